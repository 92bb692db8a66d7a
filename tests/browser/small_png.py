"""Makes a picture of a page small: its most frequent colours, each other one as the nearest."""

from __future__ import annotations

import base64
import struct
import zlib

from playwright.async_api import Browser

READ = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const brush = new OffscreenCanvas(image.width, image.height).getContext("2d");
  brush.drawImage(image, 0, 0);
  const all = new Uint32Array(brush.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([one]) => one);
  const parts = (one) => [one & 255, (one >> 8) & 255, (one >> 16) & 255];
  const far = (a, b) => parts(a).reduce((sum, part, n) => sum + (part - parts(b)[n]) ** 2, 0);
  const place = new Map(kept.map((one, n) => [one, n]));
  const nearest = (one) => kept.reduce((best, own, n) => {
    const apart = far(one, own);
    return apart < best[0] ? [apart, n] : best;
  }, [Infinity, 0])[1];
  let found = "";
  for (const one of all) {
    if (!place.has(one)) place.set(one, nearest(one));
    found += String.fromCharCode(place.get(one));
  }
  return [image.width, image.height, kept.flatMap(parts), btoa(found)];
}"""


async def small_png(browser: Browser, png: bytes) -> bytes:
    """The same picture in a palette. Of a page few colours are many pixels: the rest is the soft
    edges of letters.
    """
    page = await browser.new_page()
    try:
        width, height, palette, found = await page.evaluate(READ, base64.b64encode(png).decode())
    finally:
        await page.close()
    pixels = base64.b64decode(found)
    lines = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join((
        _chunk(b"IHDR", head), _chunk(b"PLTE", bytes(palette)),
        _chunk(b"IDAT", zlib.compress(lines, 9)), _chunk(b"IEND", b"")))  # fmt: skip


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
