/** One command of a guide, from a ```console block, and its output in the guide. */
export interface Step {
  readonly command: string
  readonly printed: string
  /** The exit code that the block declares: ```console exit=3. */
  readonly exit: number
  /** The positions in the guide's text where the output begins and ends. */
  readonly start: number
  readonly end: number
}

/** Returns the commands of a guide in order. */
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

/**
 * Returns whether the command continues after a line: until the delimiter of a here-document, or while lines end in a backslash.
 */
function continuation(first: string): (line: string) => boolean {
  const word = /<<-?'?(\w+)'?/.exec(first)?.[1]
  return word === undefined ? (line) => line.endsWith('\\') : (line) => line !== word
}

/** Returns the guide with its outputs replaced by these outputs. */
export function withOutputs(guide: string, steps: readonly Step[], outputs: readonly string[]): string {
  return steps.reduceRight(
    (text, { start, end }, index) => text.slice(0, start) + (outputs[index] ?? '') + text.slice(end),
    guide,
  )
}

// Values that differ between runs: times, ages, serial numbers, fingerprints, public key pins, keys in base64, addresses of pods,
// names of requests, and the layout of tables around them.
const masks: readonly [RegExp, string][] = [
  [/\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: UTC|Z)?/g, '<time>'],
  [/\b\d{4}-\d{2}-\d{2}[T-]\d{2}-\d{2}-\d{2}Z?/g, '<time>'],
  [/\b\d{4}-\d{2}-\d{2}\b/g, '<date>'],
  // In the name of a certificate that a process issued to itself.
  [/@\d{10}\b/g, '@<seconds>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b[0-9a-f]{16,}\b/g, '<hex>'],
  [/\b[A-Za-z0-9+/]{40,}={0,2}/g, '<base64>'],
  [/\b(?:\d+d ?)?(?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?(?: ?ms|s|m|h|d|y)\b/g, '<duration>'],
  [/\b10\.244\.\d+\.\d+\b/g, '<pod>'],
  [/\bcsr-[0-9a-z]{5}\b/g, '<csr>'],
  // Only on a busy machine, where a kubelet takes longer than a minute to start a pod.
  [/^restarting kubelet on \S+ once more: it has not started \S+\n/gm, ''],
  [/[ \t]+/g, ' '],
]

/** Returns an output with all values masked that differ between runs, for comparison. */
export function masked(output: string): string {
  return masks.reduce((text, [pattern, word]) => text.replaceAll(pattern, word), output)
}
