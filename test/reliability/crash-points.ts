import * as fs from 'node:fs'
import { join } from 'node:path'
import { isTemporaryName } from '../../src/system/leftovers.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { readPem } from '../../src/x509/pem.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { errorCodes, type Fault, Stopped, withFault } from './faulty-files.ts'
import { copyOf, said, type WritingCommand } from './writing-commands.ts'

// One command, with a fault at each of its calls that change files, one after the other. After each fault: every file is the
// complete
// old or new one; files with private keys have mode 0600; and running the same command again succeeds.

export interface Tally {
  readonly name: string
  /** Calls that change files, and calls of any kind, in a run without a fault. */
  calls: number
  all: number
  /** Stops, one after each call; and calls that failed or were cut short. */
  stops: number
  faults: number
  /** Lost data and failed checks; empty if there are none. */
  readonly losses: string[]
}

export interface Rigour {
  /** Every error at every call, instead of one error per call in turn. */
  readonly everyError: boolean
}

const pemTypes = /\.(?:pem|crt|key|csr)$/

/** Returns the result of a command with a fault at each of its calls. `template` is the folder that it starts in. */
export async function crashPoints(
  command: WritingCommand,
  template: string,
  work: string,
  { everyError }: Rigour,
): Promise<Tally> {
  const tally: Tally = { name: command.name, calls: 0, all: 0, stops: 0, faults: 0, losses: [] }
  const begin = command.over ? `${work}-over` : template
  if (command.over) {
    fs.rmSync(begin, { recursive: true, force: true })
    fs.rmSync(work, { recursive: true, force: true })
    copyOf(template, work)
    command.reset?.(work)
    await run(command, work)
    // The links of a pair store are absolute, so the folder must keep its name.
    fs.renameSync(work, begin)
  }
  fs.rmSync(work, { recursive: true, force: true })
  copyOf(begin, work)
  const old = new Map(filesOf(work).map((name) => [name, contentOf(work, name)]))
  const attempt = async (at: number, fault: Fault): Promise<void> => {
    fs.rmSync(work, { recursive: true, force: true })
    copyOf(begin, work)
    command.reset?.(work)
    let exit = 0
    const watched = await withFault(work, at, fault, async () => {
      exit = await run(command, work)
    })
    if (at === 0) {
      tally.calls = watched.calls.length
      tally.all = watched.all
    }
    const where = `${command.name}: ${at === 0 ? 'without a fault' : `${fault} at call ${at}, ${watched.calls[at - 1]}`}`
    const lose = (what: string): void => void tally.losses.push(`${where}: ${what}`)
    const isDead = watched.isStopped
    if (!isDead && exit === 1) lose(`exit 1: ${said.stderr}`)
    if (at === 0 && exit !== 0) lose(`exit ${exit}: ${said.stderr}`)
    evaluate(command, work, old, { isDone: !isDead && exit === 0 && fault !== 'stop' }, lose)
    for (const leak of leaks(work)) lose(leak)
    bury(work)
    await again(command, work, lose)
  }
  await attempt(0, 'stop')
  for (let at = 1; at <= tally.calls; at++) {
    tally.stops++
    await attempt(at, 'stop')
    const turn = [...errorCodes, 'short'] as const
    for (const fault of everyError ? turn : [turn[at % turn.length]!]) {
      tally.faults++
      await attempt(at, fault)
    }
  }
  return tally
}

async function run(command: WritingCommand, folder: string): Promise<number> {
  try {
    return await command.run(folder)
  } catch (error) {
    if (error instanceof Stopped) return 0
    throw error
  }
}

/** Checks the current files. */
function evaluate(
  { files, pair, mayLeave = [] }: WritingCommand,
  folder: string,
  old: ReadonlyMap<string, string>,
  { isDone }: { readonly isDone: boolean },
  lose: (what: string) => void,
): void {
  const isOwn = (name: string): boolean => [...files, ...mayLeave].some((file) => name.startsWith(file))
  for (const name of filesOf(folder)) {
    const text = contentOf(folder, name)
    if (holdsKey(text) && (fs.statSync(join(folder, name)).mode & 0o077) !== 0)
      lose(`${name} is readable by others`)
    if (isTemporaryName(name.split('/').at(-1)!) || text === old.get(name)) continue
    if (!isOwn(name)) lose(`${name} is changed or new`)
    // A partial last line has no newline; the next run removes it.
    else if (!isWhole(name, text, name.endsWith('.jsonl') && !isDone)) lose(`${name} is neither old nor new`)
  }
  for (const [name, text] of old) {
    if (!fs.existsSync(join(folder, name))) lose(`${name} is gone`)
    else if (!isOwn(name) && contentOf(folder, name) !== text) lose(`${name} is changed`)
  }
  if (isDone) complete(files, pair, folder, lose)
}

/** Runs the same command again: it succeeds, or every file exists and is not overwritten. */
async function again(command: WritingCommand, folder: string, lose: (what: string) => void): Promise<void> {
  const exit = await run(command, folder)
  const { nextExits = [0, 5] } = command
  if (!nextExits.includes(exit)) lose(`run again: exit ${exit}: ${said.stderr}`)
  const none = (what: string): void => lose(`run again: ${what}`)
  const files = command.files.filter((name) => name !== command.onCluster)
  complete(files, command.pair, folder, none)
  for (const name of filesOf(folder))
    if (command.files.some((file) => name.startsWith(file)) && !isWhole(name, contentOf(folder, name), false))
      none(`${name} is not whole`)
}

/** Checks that every file exists, and that certificate and key match. */
function complete(
  files: readonly string[],
  pair: WritingCommand['pair'],
  folder: string,
  lose: (what: string) => void,
): void {
  const there = filesOf(folder)
  for (const file of files) if (!there.some((name) => name.startsWith(file))) lose(`${file} is not there`)
  if (pair === undefined || !pair.every((name) => there.includes(name))) return
  const [document, key] = pair.map((name) => fs.readFileSync(join(folder, name)))
  const [{ label, der } = { label: '', der: new Uint8Array() }] = readPem(document!).blocks
  const { publicKey } =
    label === 'CERTIFICATE' ? readCertificates(document!)[0]! : CertificateRequest.parse(der)
  const spki = (one: { export(options: { type: 'spki'; format: 'der' }): Buffer }): string =>
    one.export({ type: 'spki', format: 'der' }).toString('hex')
  if (spki(publicKey.keyObject()) !== spki(publicOf(key!))) lose(`${pair[1]} is not the key of ${pair[0]}`)
}

function publicOf(pem: Uint8Array) {
  const { createPublicKey } = process.getBuiltinModule('node:crypto')
  return createPublicKey(readPrivateKeyFile(pem).keyObject!)
}

/** Returns where a private key of the folder is also visible: in the output, or in another file. */
function leaks(folder: string): string[] {
  const names = filesOf(folder)
  const secrets = names.flatMap((name) => {
    const [, body] = /-----BEGIN [A-Z ]*PRIVATE KEY-----\n([^-]*)-----END/.exec(contentOf(folder, name)) ?? []
    // The first line of a PKCS#8 key has much in common with other keys.
    return body === undefined ? [] : body.trim().split('\n').slice(1, 2)
  })
  const shown = said.stdout + said.stderr
  const isOpen = (name: string): boolean => (fs.statSync(join(folder, name)).mode & 0o077) !== 0
  const open = names.filter((name) => fs.existsSync(join(folder, name)) && isOpen(name))
  return secrets.flatMap((secret) => [
    ...(shown.includes(secret) ? ['a private key is said'] : []),
    ...open
      .filter((name) => contentOf(folder, name).includes(secret))
      .map((name) => `a private key is in ${name}`),
  ])
}

/** The process that held a lock is this running one, so the test marks its leftovers as those of a dead process. */
function bury(folder: string): void {
  for (const name of filesOf(folder)) {
    if (!name.endsWith('.lock.kcert-tmp')) continue
    const path = join(folder, name)
    fs.writeFileSync(
      path,
      JSON.stringify({ ...JSON.parse(fs.readFileSync(path, 'utf8')), startedTicks: '1' }),
    )
  }
}

/** Returns the names of files below a folder, including links. */
function filesOf(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

function contentOf(folder: string, name: string): string {
  return fs.readFileSync(join(folder, name), 'latin1')
}

function holdsKey(text: string): boolean {
  return /PRIVATE KEY-----|client-key-data|^\w{6}\.\w{16}$/m.test(text)
}

/** Returns true for a complete document of its kind, from the first byte to the last. */
function isWhole(name: string, text: string, mayBeTorn: boolean): boolean {
  try {
    if (name.endsWith('.jsonl')) {
      const lines = text.split('\n')
      const last = lines.pop()
      for (const line of lines) JSON.parse(line)
      return last === '' || mayBeTorn
    }
    if (pemTypes.test(name))
      return readPem(Buffer.from(text, 'latin1')).blocks.length > 0 && text.endsWith('-----\n')
    if (name.endsWith('.json')) return typeof JSON.parse(text) === 'object'
    return text.length > 0 && text.endsWith('\n')
  } catch {
    return false
  }
}
