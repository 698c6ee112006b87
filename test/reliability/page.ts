import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

// docs/reliability.md: the text between `<!-- NAME -->` and `<!-- /NAME -->` is the output of a command.

const page = 'docs/reliability.md'

/** Prints a command's measurement with date and machine, and with `--write` inserts it into the page. */
export function publish(name: string, text: string): void {
  const whole = `${text.trim()}\n\n${machine()}`
  process.stdout.write(`${whole}\n`)
  if (!process.argv.includes('--write')) return
  const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const before = readFileSync(page, 'utf8')
  const [from, to] = [before.indexOf(start), before.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${page} has no place for ${name}`)
  writeFileSync(page, `${before.slice(0, from + start.length)}\n\n${whole}\n\n${before.slice(to)}`)
}

/** Returns a Markdown table. */
export function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows.map((row) => row.map(formatted))]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function formatted(cell: string | number): string {
  return typeof cell === 'number' ? cell.toLocaleString('en') : cell
}

function machine(): string {
  const date = execFileSync('date', ['-u', '+%F'], { encoding: 'utf8' }).trim()
  const processor = `${cpus().length} cores (${cpus()[0]?.model.trim()})`
  return `${date}, ${processor}, Node ${process.versions.node}, load ${loadavg()[1]!.toFixed(1)}.`
}
