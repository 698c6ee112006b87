import * as fs from 'node:fs'
import { join } from 'node:path'
import { isTemporaryName } from '../../src/system/leftovers.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { readPem } from '../../src/x509/pem.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { errorCodes, type Fault, Stopped, withFault } from './faulty-files.ts'
import { copyOf, said, type WritingCommand } from './writing-commands.ts'

// One command, and a fault at each of its calls that change files, one after the other. After each: every file is the old one or the new
// one, whole; what holds a private key is its owner's alone; and the same command run once more comes to its end.

export interface Tally {
  readonly name: string
  /** Calls that change files, and calls of any kind, in a run without fault. */
  calls: number
  all: number
  /** Stops, one behind each call; and calls that failed or were cut short. */
  stops: number
  faults: number
  /** What was lost, or is no answer: empty. */
  readonly losses: string[]
}

export interface Rigour {
  /** Every error at every call, not one of them in turn. */
  readonly everyError: boolean
}

const pemTypes = /\.(?:pem|crt|key|csr)$/

/** Returns what came of a command with a fault at each of its calls. `template` is the folder that it begins in. */
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
    // The links of a store of pairs are absolute: the folder must have its name.
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

/** Looks at what lies there now. */
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
    // The line that was being written has no end: the next run cuts it off.
    else if (!isWhole(name, text, name.endsWith('.jsonl') && !isDone)) lose(`${name} is neither old nor new`)
  }
  for (const [name, text] of old) {
    if (!fs.existsSync(join(folder, name))) lose(`${name} is gone`)
    else if (!isOwn(name) && contentOf(folder, name) !== text) lose(`${name} is changed`)
  }
  if (isDone) complete(files, pair, folder, lose)
}

/** The same command once more: done, or everything is there and is not written over. */
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

/** Every file is there, and certificate and key are of one making. */
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

/** Where a private key that lies in the folder now can be seen besides: in what was said, or in a file that is not its own. */
function leaks(folder: string): string[] {
  const names = filesOf(folder)
  const secrets = names.flatMap((name) => {
    const [, body] = /-----BEGIN [A-Z ]*PRIVATE KEY-----\n([^-]*)-----END/.exec(contentOf(folder, name)) ?? []
    // The first line of a key of PKCS#8 has much that all keys have.
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

/** The process that held a lock is this one, and lives: what it left says so no more. */
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

/** Names of files below a folder; of links, too. */
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

/** True for what is a document of its kind from the first octet to the last. */
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
