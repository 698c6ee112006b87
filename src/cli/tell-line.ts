import { printable } from '../output/terminal.ts'

/** Writes a line to standard error. Names in it come from files, nodes and API answers: none of them ends the line or moves the cursor. */
export function tellLine(stderr: Pick<NodeJS.WritableStream, 'write'>, text: string): void {
  stderr.write(`${printable(text)}\n`)
}
