// Search runs in a worker, and a browser starts none from a page that is a file. There it runs in a
// hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = new URL(url, location)
        script.onload = () => resolve(inside)
        script.onerror = () => reject(new Error(`${url} cannot be read`))
        inside.postMessage = (data) => this.told(data)
        inside.document.body.append(script)
      })
      this.ready.catch((error) => this.onerror?.(error))
    }

    told(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) })
      this.onmessage?.(event)
      this.dispatchEvent(event)
    }

    // A worker has a copy of what it is told, and changes it: of a question it takes the words away
    postMessage(message) {
      const data = structuredClone(message)
      this.ready.then((inside) => {
        inside.dispatchEvent(new inside.MessageEvent("message", { data }))
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
}
