// Browsers start no worker from a page of the file system: there, the worker's script (the search) runs in a frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${new URL(address, location)}"></script>`;
      this.scope = new Promise((ready) =>
        frame.addEventListener("load", () => {
          const scope = frame.contentWindow;
          scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          ready(scope);
        }),
      );
      document.body.append(frame);
    }

    async postMessage(data) {
      (await this.scope).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
