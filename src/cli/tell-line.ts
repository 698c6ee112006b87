import { printable } from '../output/terminal.ts'

/**
 * Writes a line to standard error. Names from files, nodes and API responses in it are escaped: none can end the line or move the
 * cursor.
 */
export function tellLine(stderr: Pick<NodeJS.WritableStream, 'write'>, text: string): void {
  stderr.write(`${printable(text)}\n`)
}
