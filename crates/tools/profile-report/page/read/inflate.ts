/** The bytes that an element of the page holds as base64 of a zlib stream. */
export async function inflate(id: string): Promise<Uint8Array> {
  const element = document.getElementById(id);
  const text = element?.textContent ?? "";
  // The text is as large as all the rest of the page, and is read once.
  element?.remove();
  const compressed = new Blob([fromBase64(text)]);
  const inflated = compressed.stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
