// The first hits of a site's own search, asked as its pages ask it, without a browser:
//   node search.js SITE < questions.json
const fs = require("node:fs")
const path = require("node:path")
const vm = require("node:vm")

const site = process.argv[2]
const questions = JSON.parse(fs.readFileSync(0, "utf8"))
const index = JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8"))
const folder = path.join(site, "assets", "javascripts", "workers")
const [worker] = fs.readdirSync(folder).filter((name) => /^search\..*\.js$/.test(name))
const filter = {
  input: { type: "operator", data: { operator: "and", operands: [] } },
  aggregation: { input: [{ type: "term", data: { field: "tags" } }] },
}
const hits = []
const ask = () => {
  if (hits.length === questions.length) return process.stdout.write(JSON.stringify(hits))
  self.onmessage({ data: { type: 2, data: structuredClone({ input: questions[hits.length], filter }) } })
}
globalThis.self = globalThis
self.postMessage = ({ type, data }) => {
  if (type === 4) throw new Error("the search has failed")
  if (type === 3) hits.push(data.items.slice(0, 5).map((item) => index.items[item.id]?.location ?? item))
  ask()
}
vm.runInThisContext(fs.readFileSync(path.join(folder, worker), "utf8"))
self.onmessage({ data: { type: 0, data: index } })
