// TensorBoard imports this module into a frame of its own; the page is a document beside it.

/** Called by TensorBoard once the frame is there. */
export async function render() {
  document.location.href = "index.html";
}
