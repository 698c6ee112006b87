/** One command of a guide, as it stands in a ```console block, and what the guide says that it prints. */
export interface Step {
  readonly command: string
  readonly printed: string
  /** The exit code that the block announces: ```console exit=3. */
  readonly exit: number
  /** Where the printed lines begin and end in the guide's text. */
  readonly start: number
  readonly end: number
}

/** Returns the commands of a guide in their order. */
export function readSteps(guide: string): Step[] {
  const blocks = guide.matchAll(/^```console(?: exit=(\d+))?\n([\s\S]*?)^```$/gm)
  return [...blocks].flatMap((block) => {
    const [whole, exit, body = ''] = block
    return stepsOfBlock(body, block.index + whole.length - '```'.length - body.length, Number(exit ?? 0))
  })
}

function stepsOfBlock(body: string, offset: number, exit: number): Step[] {
  const steps: Step[] = []
  let command: string[] = []
  let isOpen: (line: string) => boolean = () => false
  let start = offset
  let at = offset
  const finish = (): void => {
    if (command.length === 0) return
    steps.push({
      command: command.join('\n'),
      printed: body.slice(start - offset, at - offset),
      exit,
      start,
      end: at,
    })
    command = []
  }
  for (const line of body.match(/.*\n/g) ?? []) {
    const text = line.slice(0, -1)
    if (command.length > 0 && isOpen(command.at(-1) ?? '')) command.push(text)
    else if (text.startsWith('$ ')) {
      finish()
      command = [text.slice(2)]
      isOpen = continuation(text)
    } else {
      at += line.length
      continue
    }
    at += line.length
    start = at
  }
  finish()
  return steps
}

/** Whether the command goes on after a line of it: until a here-document's word, or while lines end in a backslash. */
function continuation(first: string): (line: string) => boolean {
  const word = /<<-?'?(\w+)'?/.exec(first)?.[1]
  return word === undefined ? (line) => line.endsWith('\\') : (line) => line !== word
}

/** Returns the guide with what the commands printed in the place of what it said. */
export function withOutputs(guide: string, steps: readonly Step[], outputs: readonly string[]): string {
  return steps.reduceRight(
    (text, { start, end }, index) => text.slice(0, start) + (outputs[index] ?? '') + text.slice(end),
    guide,
  )
}

// What differs from run to run: times, ages, serial numbers, fingerprints, pins, keys in base64, addresses of pods, names of
// requests; and how a table was laid out around them.
const masks: readonly [RegExp, string][] = [
  [/\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: UTC|Z)?/g, '<time>'],
  [/\b\d{4}-\d{2}-\d{2}[T-]\d{2}-\d{2}-\d{2}Z?/g, '<time>'],
  [/\b\d{4}-\d{2}-\d{2}\b/g, '<date>'],
  // In the name of a certificate that a process made for itself.
  [/@\d{10}\b/g, '@<seconds>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b[0-9a-f]{16,}\b/g, '<hex>'],
  [/\b[A-Za-z0-9+/]{40,}={0,2}/g, '<base64>'],
  [/\b(?:\d+d ?)?(?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?(?: ?ms|s|m|h|d|y)\b/g, '<duration>'],
  [/\b10\.244\.\d+\.\d+\b/g, '<pod>'],
  [/\bcsr-[0-9a-z]{5}\b/g, '<csr>'],
  [/[ \t]+/g, ' '],
]

/** Returns an output with everything masked that is another in each run, for comparison. */
export function masked(output: string): string {
  return masks.reduce((text, [pattern, word]) => text.replaceAll(pattern, word), output)
}
