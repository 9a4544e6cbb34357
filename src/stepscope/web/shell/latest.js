// Questions that overtake one another: only the answer to the one that was asked last counts.

/**
 * Waits for an answer; where another question was asked meanwhile, it ends as if the view had been left, which is no error.
 * @returns {<T>(answer: Promise<T> | T) => Promise<T>}
 */
export function latest() {
  let asked = 0;
  return async (answer) => {
    const mine = ++asked;
    const overtaken = () => new DOMException("another question was asked", "AbortError");
    try {
      const found = await answer;
      if (mine === asked) return found;
    } catch (error) {
      throw mine === asked ? error : overtaken();
    }
    throw overtaken();
  };
}
