// Fills a store of mnemon-mcp with its own schema, stemmer and insert code: JSON lines in on
// standard input. Its conflict query at each addition with an entity is left out, as it adds
// nothing to the store and would make 100,000 additions take most of an hour.
//
//   node peer_load.mjs NODE_MODULES/mnemon-mcp/dist OUT.db < memories.jsonl
import { createInterface } from "node:readline";

const [dist, out] = process.argv.slice(2);
const { openDatabase } = await import(`${dist}/db.js`);
const { generateId, insertMemory } = await import(`${dist}/tools/utils.js`);

const db = openDatabase(out);
const note = db.prepare(
  "INSERT INTO event_log (memory_id, event_type, actor, old_content, new_content) VALUES (?, 'created', ?, NULL, ?)",
);

const insertAll = db.transaction((memories) => {
  for (const memory of memories) {
    const id = generateId();
    insertMemory(db, {
      source_file: null,
      session_id: null,
      expires_at: null,
      supersedes: null,
      valid_from: null,
      valid_until: null,
      ...memory,
      id,
      meta: JSON.stringify(memory.meta),
    });
    note.run(id, memory.source, memory.content);
  }
});

let batch = [];
for await (const line of createInterface({ input: process.stdin })) {
  batch.push(JSON.parse(line));
  if (batch.length === 200) {
    insertAll(batch);
    batch = [];
  }
}
insertAll(batch);
db.close();
