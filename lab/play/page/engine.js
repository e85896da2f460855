// The engine: the limiter's own Go code, compiled to WebAssembly.

export const bins = 240; // columns of a timeline, as engine.Bins
export const perColumn = 7; // numbers of a column, as in frame()

// start loads the engine and returns its functions. It works from any file server, also from one that does not know
// the type of a .wasm file.
export async function start() {
  const go = new globalThis.Go();
  const response = await fetch('sluice.wasm');
  if (!response.ok) throw new Error(`sluice.wasm: ${response.status}`);
  const { instance } = await instantiate(response, go.importObject);
  go.run(instance); // returns when the program blocks; it runs as long as the page
  return globalThis.sluice;
}

async function instantiate(response, imports) {
  if (WebAssembly.instantiateStreaming && (response.headers.get('Content-Type') || '').startsWith('application/wasm')) {
    return WebAssembly.instantiateStreaming(response, imports);
  }
  return WebAssembly.instantiate(await response.arrayBuffer(), imports);
}
