import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { readFile } from '../system/files.ts'
import { checkKeyPath, checkOutputPath } from '../system/output-file.ts'
import { holdsPrivateKey } from '../x509/private-key-traces.ts'

// One rule for all commands that write files: a command never overwrites its input, and its outputs are different files,
// under any name and with or without --force.

/** A file as the command line names it. */
export interface NamedFile {
  /** "--ca-key"; for an operand, its name in the help: "REQUEST". */
  readonly by: string
  /** "-" is standard input or output; undefined if the flag is absent. */
  readonly path: string | undefined
}

/** Returns the files that flags name. */
export function flagFiles<Name extends string>(
  flags: { readonly [name in Name]?: string | undefined },
  ...names: readonly Name[]
): NamedFile[] {
  return names.map((name) => ({ by: `--${name}`, path: flags[name] }))
}

export interface OutputFile extends NamedFile {
  /** `key`: a private key is written to it. `log`: lines are appended to it, and it is never replaced. */
  readonly holds: 'key' | 'public' | 'log'
}

export interface CommandFiles {
  readonly inputs: readonly NamedFile[]
  readonly outputs: readonly OutputFile[]
  /** --force */
  readonly replace: boolean
}

interface Named extends NamedFile {
  readonly path: string
}

/**
 * Refuses a command line whose files would overwrite each other, before anything is read or created. Throws KCERT_USAGE for an
 * empty file name, two inputs from standard input, and two outputs to one file. Throws KCERT_FILE_EXISTS for an output that is an
 * input or an existing file that must not be replaced, and for a certificate that would replace a private key.
 */
export function checkFiles({ inputs, outputs, replace }: CommandFiles): void {
  const [reads, writes] = [inputs.filter(isNamed), outputs.filter(isNamed)]
  for (const file of [...reads, ...writes]) if (file.path === '') throw nameless(file)
  checkStandardInput(reads)
  const printed = writes.find(({ path, holds }) => path === '-' && holds === 'log')
  if (printed !== undefined)
    throw new KcertError('KCERT_USAGE', `${printed.by} cannot be standard output`, {
      why: 'kcert reads the issued serial numbers from it, so it needs a file',
    })
  const files = writes.filter(isOnDisk)
  // The up to ten thousand inputs of `kcert inspect` are checked only if the command writes a file.
  if (files.length > 0) checkApart(reads.filter(isOnDisk), files)
  for (const file of files) checkPlace(file, replace)
}

function checkApart(inputs: readonly Named[], outputs: readonly Named[]): void {
  const read = new Map(inputs.map((input) => [identityOf(input.path), input]))
  const written = new Map<string, Named>()
  for (const output of outputs) {
    const identity = identityOf(output.path)
    const [input, other] = [read.get(identity), written.get(identity)]
    if (input !== undefined) throw overInput(output, input)
    if (other !== undefined)
      throw new KcertError('KCERT_USAGE', `${wordsOf(other)} and ${wordsOf(output)} are the same file`, {
        why: 'one would overwrite the other',
      })
    written.set(identity, output)
  }
}

/** Throws KCERT_USAGE if more than one of these is standard input: the second one would be empty. */
export function checkStandardInput(inputs: readonly NamedFile[]): void {
  const [one, other] = inputs.filter(({ path }) => path === '-')
  if (one === undefined || other === undefined) return
  const both = one.by === other.by ? `two of ${other.by}` : `${one.by} and ${other.by}`
  throw new KcertError('KCERT_USAGE', `${both} cannot both be standard input`, {
    why: 'standard input can be read only once',
    fix: 'name a file for one of them',
  })
}

function checkPlace({ path, holds, by }: Named & OutputFile, replace: boolean): void {
  if (holds === 'key') checkKeyPath(path, { replace })
  if (holds !== 'public') return
  checkOutputPath(path, { replace })
  if (!replace) return
  const found = readFile(path)
  if ('bytes' in found && holdsPrivateKey(found.bytes))
    throw new KcertError('KCERT_FILE_EXISTS', `${path} contains a private key and is not replaced`, {
      why: `${by} writes no private key, so the key would be lost, and --force does not allow that`,
    })
}

function isOnDisk({ path }: Named): boolean {
  return path !== '-'
}

function isNamed<File extends NamedFile>(file: File): file is File & Named {
  return file.path !== undefined
}

/** Returns an identity that is the same for all names of one file, whether or not it exists. */
function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return realPathOf(resolve(path))
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(realPathOf(parent), basename(path))
  }
}

function nameless({ by }: NamedFile): KcertError {
  return new KcertError('KCERT_USAGE', `${by} "" is not a file name`, {
    why: 'a shell variable may be empty',
  })
}

function overInput(output: Named, input: Named): KcertError {
  const what = `${output.by} ${output.path} is also the input ${wordsOf(input)}`
  return new KcertError('KCERT_FILE_EXISTS', what, {
    why: 'the command would overwrite its own input, and --force does not allow that',
  })
}

function wordsOf({ by, path }: Named): string {
  return `${by} ${path}`
}
