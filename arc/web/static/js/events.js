// Reads server-sent events from a fetch, so that a token can travel in a header.

/** Reads until the stream ends, fails or is given up.
 * @param {string} path @param {Object<string, string>} headers @param {AbortSignal} signal
 * @param {(kind: string, data: string) => void} hear every event; a comment is heard as `ping` */
export async function readEvents(path, headers, signal, hear) {
  const answer = await fetch(path, { headers: { accept: "text/event-stream", ...headers }, signal });
  if (!answer.ok || !answer.body) throw new Error(`${path}: ${answer.status}`);
  hear("open", "");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (left + value.replaceAll("\r\n", "\n")).split("\n\n");
    left = parts.pop() ?? "";
    for (const part of parts) one(part, hear);
  }
}

/** @param {string} part @param {(kind: string, data: string) => void} hear */
function one(part, hear) {
  let kind = "message";
  const data = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  hear(data.length ? kind : "ping", data.join("\n"));
}
