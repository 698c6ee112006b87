import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Session } from './program.ts'

// The advice of messages as an operator pastes it: `next:` lines, cells of reports, and their commands.

const stubs =
  'kcert kubectl kubeadm openssl systemctl journalctl crictl ssh ssh-keygen keytool sudo ls df mv rm cp ln cat chmod chown mkdir mktemp install head kill grep sed tr base64 iconv ss nc echo date jq shred'.split(
    ' ',
  )
const beginsCommand = new RegExp(String.raw`(?:^|[:,;] |\()(?=(?:${stubs.join('|')}) \S)`, 'g')

/** Returns the advice of a session, each command up to the end of its line. */
export function adviceOf({ stdout, stderr }: Pick<Session, 'stdout' | 'stderr'>): string[] {
  const lines = `${stdout}\n${stderr}`
    .split('\n')
    .flatMap(
      (line) =>
        /^\s*next:? +(.*)$/.exec(line)?.slice(1) ?? (line.startsWith('  ') ? commandOf(line.trim()) : []),
    )
  return lines.flatMap((line) => [line, ...commandsIn(line)])
}

/** Returns a command on a separate line below the advice. */
function commandOf(line: string): string[] {
  return commandsIn(line)
    .slice(0, 1)
    .filter((command) => command === line)
}

/** Returns each command in a line of advice, up to the end of the line. */
function commandsIn(line: string): string[] {
  return Array.from(line.matchAll(beginsCommand), ({ index, 0: before }) => line.slice(index + before.length))
}

/**
 * Runs pasted lines with bash, which finds only programs that record their arguments: each process in its own file, because bash
 * writes what it prints line by line, and the programs of a pipe run at the same time.
 */
export class PastingShell {
  readonly #folder: string
  readonly #record: string
  readonly #bin: string

  constructor(folder: string) {
    this.#folder = join(folder, 'pasted')
    this.#record = join(folder, 'record')
    this.#bin = join(folder, 'stubs')
    mkdirSync(this.#bin)
    mkdirSync(this.#folder)
    for (const name of stubs) {
      const script = `#!/bin/bash\nprintf '%s\\0' ${name} "$@" >> "$RECORD/$$"\n/usr/bin/readlink /proc/self/fd/0 >> "$RECORD/$$"\nprintf '\\0' >> "$RECORD/$$"\n`
      writeFileSync(join(this.#bin, name), script, { mode: 0o755 })
    }
    // The payload of a name that is not quoted.
    symlinkSync('/usr/bin/touch', join(this.#bin, 'touch'))
  }

  /** Returns the words that the programs received, and whether the line had any other effect. */
  paste(line: string): { words: string[]; isInjected: boolean } {
    rmSync(this.#record, { force: true, recursive: true })
    mkdirSync(this.#record)
    spawnSync('/bin/bash', ['-c', line], {
      cwd: this.#folder,
      env: { PATH: this.#bin, HOME: this.#folder, RECORD: this.#record },
      timeout: 20_000,
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    const isInjected = existsSync(join(this.#folder, 'INJ'))
    rmSync(join(this.#folder, 'INJ'), { force: true })
    const words = readdirSync(this.#record).flatMap((file) =>
      readFileSync(join(this.#record, file), 'utf8').split('\0'),
    )
    return { words, isInjected }
  }
}
