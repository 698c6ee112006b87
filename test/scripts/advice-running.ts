import {
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { expect } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { commandsOf, simpleCommands, wordOfProse } from '../../scripts/pasted-line.ts'

// Each line of advice that a session prints is run as printed, right after the session and in the same folder. All sessions pass
// through here (program.ts), so every test that triggers a message also runs its advice, once for each kind of line.

/**
 * Commands that no test runs, with the reason. They are still parsed: the line must contain only commands, pass bash -n, and each
 * kcert in it must accept its command line.
 */
export const notRunHere: readonly (readonly [command: RegExp, reason: string])[] = [
  [/\b(?:crictl|journalctl|systemctl|timedatectl)\b/, 'needs a node with systemd and a container runtime'],
  [/\bssh\b/, 'needs a node'],
  [/\bkeytool\b/, 'needs Java'],
  [/\bkubectl\b/, 'needs a real cluster; its flags are checked where kubectl is there'],
  [/\bkubeadm\b/, 'changes /etc/kubernetes; its flags are checked where kubeadm is there'],
  [/\bopenssl (?:pkcs12|s_client)\b/, 'waits for input'],
  [/ -(?= |$)/, 'reads what is piped into it'],
  [/\bsudo\b/, 'the test is root already, or must not be'],
  [/\bkcert (?:rotate-ca|renew|kubelet)\b/, 'acts on the nodes of an inventory'],
  [/\bkcert controller --/, 'runs until a signal'],
  [
    /\b(?:chmod|mv|rm|sed -i|ssh-keygen|shred|install|mkdir|ln)\b/,
    'changes files outside the copy of the folder',
  ],
  [/\B\/(?:etc\/kubernetes|var\/lib\/kubelet)\b/, 'names files of a node'],
  [/\b(?:nc|ss) /, 'needs a program that not every machine has'],
  [/\b(?:df|ls) .*\/proc/, 'looks at the machine'],
  [/^kcert csr create$/, 'asks on a terminal'],
]

/** Tests in the lab assert the state of requests after the session whose advice this is. */
const writesRequests = /\bkcert (?:csr (?:approve|deny)|ca sign --csr)\b/

/** A placeholder for the user to fill in. */
const placeholder =
  /(?:^|[\s=/.])(?:ADDRESS|CLIENT|DIR|FILES?|FOLDER|HOST|HOST-OR-IP|ID|LEAF|NAME|NAMESPACE|NEW|NODE|PORT|REQUEST|ROW|SHELL|TIME|USER|VERSION)(?=$|[\s:./,])|…/

export interface Situation {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: string
  readonly stderr: string
}

/** Returns the commands in the `next:` lines of a session. Throws where a sentence follows a command. */
export function advisedCommands({ stdout, stderr }: Pick<Situation, 'stdout' | 'stderr'>): string[] {
  const lines = `${stdout}\n${stderr}`
    .replaceAll(/\u001b\[\d+m/g, '')
    .split('\n')
    .flatMap((line) => /^\s*(?:- )?next:? +(.*)$/.exec(line)?.[1] ?? [])
    .map((text) => (/^".*"$/.test(text) ? String(parseYaml(text)) : text))
  return lines.flatMap((line) => {
    const commands = commandsOf(line)
    if (commands === undefined) return []
    const word = wordOfProse(commands)
    if (word !== undefined) throw new Error(`"${word}" is no part of a command: next: ${line}`)
    return commands
  })
}

/** A line of advice, prepared to run. */
export interface AdviceRun {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Situation['env']
  /** Throws when the line failed. Removes its folder. */
  readonly check: (result: AdviceResult) => void
}

export interface AdviceResult {
  readonly exit: number | null
  readonly text: string
}

/** Returns the advice that no earlier session printed, and how each line is run. */
export function adviceRuns(situation: Situation): AdviceRun[] {
  const folder = process.env.KCERT_TEST_ADVICE
  // The names in this file are not files or objects that a command could find. The test pastes every line itself.
  const path = expect.getState().testPath ?? ''
  const isHostile = basename(path) === 'hostile-names.test.ts'
  const isRealCluster = basename(dirname(path)) === 'lab'
  if (folder === undefined || isHostile) return []
  return advisedCommands(situation).flatMap((command) => {
    const reason = placeholder.test(command)
      ? 'a person fills in a word'
      : namesStream(command, situation.cwd)
        ? 'reads what need not end'
        : isRealCluster && writesRequests.test(command)
          ? 'changes a request of the test, on its only cluster'
          : notRunHere.find(([pattern]) => pattern.test(command))?.[1]
    const name = `${reason === undefined ? 'ran' : 'parsed'}-${kindOf(situation.args, command)}`
    if (!claim(folder, name, `${command}\t${reason ?? ''}`)) return []
    return reason === undefined ? running(command, situation) : parsing(command)
  })
}

function namesStream(command: string, cwd: string): boolean {
  return command.split(/[\s'";]+/).some((word) => {
    const stats = lstatSync(resolve(cwd, word), { throwIfNoEntry: false })
    return stats?.isFIFO() || stats?.isCharacterDevice()
  })
}

/** Lines of one command that differ only in names and paths are one kind. */
function kindOf(args: readonly string[], command: string): string {
  const words = args.filter((word) => /^[a-z-]+$/.test(word)).slice(0, 2)
  const shape = command
    .replaceAll(/(?<=\s)(?!-|\||&|;)[^\s;]*[^a-z\s;-][^\s;]*/g, '_')
    .replaceAll(/[^\w-]+/g, '.')
  return `${words.join('.')}-${shape}`.slice(0, 200)
}

/** Returns true in the first test process that calls it for this text. */
function claim(folder: string, name: string, text: string): boolean {
  try {
    const file = openSync(join(folder, name), 'wx')
    writeFileSync(file, text)
    closeSync(file)
    return true
  } catch {
    return false
  }
}

function running(command: string, { args, cwd, env: own }: Situation): AdviceRun {
  // Advice does not name a kubeconfig, as in kubectl's own. It is for a shell in which KUBECONFIG is set.
  const kubeconfig = args[args.indexOf('--kubeconfig') + 1]
  const env = args.includes('--kubeconfig') ? { ...own, KUBECONFIG: resolve(cwd, kubeconfig ?? '') } : own
  // The files that the advice writes must not affect the test.
  const copies = mkdtempSync(join(tmpdir(), 'kcert-advice-'))
  const roots = new Set(Array.from(`${cwd} ${command}`.matchAll(temporaryRoot), ([root]) => root))
  // A checkout below the temporary folder is not a test's own folder, and copying it takes longer than the test.
  for (const root of roots) if (`${process.cwd()}/`.startsWith(`${root}/`)) roots.delete(root)
  let line = command
  let place = readsOnly.test(command) ? cwd : copies
  for (const [index, root] of [...roots].entries()) {
    const copy = join(copies, String(index))
    if (existsSync(root)) cpSync(root, copy, { recursive: true, verbatimSymlinks: true, filter: isPlain })
    line = line.replaceAll(root, copy)
    if (cwd.startsWith(root)) place = cwd.replace(root, copy)
  }
  const file = join(copies, 'line')
  writeFileSync(file, `${shellFunction('bin/run.js')}${line}\n`)
  const check = ({ exit, text }: AdviceResult): void => {
    rmSync(copies, { recursive: true, force: true })
    const missing = /KCERT_FILE_NOT_FOUND: (?:there is no file )?(\S+)/.exec(text)?.[1]
    const isMissing = missing !== undefined && line.includes(missing)
    // ls may report a missing file: that is its purpose in this advice.
    const isShown = /^ls: cannot access .*: No such file/m.test(text)
    if (isShown || (exit !== 1 && exit !== 2 && !isMissing && !unknownWord.test(text))) return
    throw new Error(
      `the advice of "kcert ${args.join(' ')}" fails: ${command}\nexit ${exit}: ${text.slice(0, 2_000)}`,
    )
  }
  return { argv: ['/bin/bash', '--norc', file], cwd: place, env, check }
}

const temporaryRoot = new RegExp(`${RegExp.escape(tmpdir())}/[^/\\s'":]+`, 'g')
const readsOnly =
  /^kcert (?:inspect|verify|probe|explain-error|csr (?:check|list|explain|describe)|.*--help)\b/
const unknownWord = /unknown flag: |unknown command "|invalid option|unrecognized option|command not found/

function parsing(command: string): AdviceRun {
  const own = simpleCommands(command)
    .map((words) => (words[0] === 'sudo' ? words.slice(1) : words))
    .filter(([program]) => program === 'kcert')
  const script = own.map((words) => `${words.join(' ')} || exit`).join('\n')
  const check = ({ exit, text }: AdviceResult): void => {
    if (exit !== 0) throw new Error(`the advice ${command} is not parsed: ${text}`)
  }
  const whole = `bash -n -c "$1" || exit\n${shellFunction('test/scripts/parse-only.ts')}${script}`
  return { argv: ['/bin/bash', '--norc', '-c', whole, 'bash', command], cwd: '/', env: {}, check }
}

/** Returns a shell function that runs kcert from one of its scripts. */
function shellFunction(script: string): string {
  return `kcert() { ${JSON.stringify(process.execPath)} ${JSON.stringify(resolve(script))} "$@"; }\n`
}

/** Reading a FIFO would never end, and a dangling link is not a file. */
function isPlain(path: string): boolean {
  const stats = lstatSync(path)
  return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()
}
