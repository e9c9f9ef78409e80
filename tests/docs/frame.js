// What a page has that asks in a frame in place of a worker, after the frame has changed what it was told:
//   node frame.js iframe-worker.js
const fs = require("node:fs")

const inside = new EventTarget()
inside.MessageEvent = MessageEvent
inside.document = {
  createElement: () => ({}),
  body: { append: (script) => setTimeout(() => script.onload()) },
}
globalThis.window = globalThis
globalThis.location = { protocol: "file:", href: "file:///page.html", toString: () => "file:///page.html" }
globalThis.document = {
  createElement: () => ({ contentWindow: inside }),
  body: { append: () => {} },
}
eval(fs.readFileSync(process.argv[2], "utf8"))
const worker = new window.Worker("search.js")
const asked = { input: "null key" }
const kept = { items: [1] }
inside.addEventListener("message", ({ data }) => {
  data.input = ""
  inside.postMessage(kept)
})
worker.onmessage = ({ data }) => {
  data.items.push(2)
  process.stdout.write(JSON.stringify([asked, kept, data]))
}
worker.postMessage(asked)
