// Browsers start no worker from a file:// page. There, the search of the site runs in a hidden frame instead, so that the
// documentation can be searched without a server. Pages that come over HTTP keep the browser's own Worker.
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.scope = this.frame.contentWindow;
      // Not the frame's load event: that of the empty frame may come first, and what is sent then has no one to hear it.
      this.ready = new Promise((resolve) => (this.scope.loaded = resolve));
      this.scope.answer = (data) => this.receive(data);
      const page = this.scope.document;
      page.open();
      page.write(
        "<script>postMessage = (data) => answer(data);" +
          "importScripts = (...urls) => urls.forEach((url) => document.write('<script src=\"' + url + '\"><\\/script>'));" +
          `</script><script src="${url}"></script><script>loaded()</script>`,
      );
      page.close();
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (typeof this.onmessage === "function") this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
