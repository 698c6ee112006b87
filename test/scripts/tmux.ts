import { execFileSync, spawnSync } from 'node:child_process'
import { onTestFinished } from 'vitest'

// A terminal in tmux that a test can type into and read, with its own width, colours and keys.

export const hasTmux = spawnSync('tmux', ['-V']).status === 0

let count = 0

/** A terminal that runs one command until the test ends. Its final screen stays readable, with "ended CODE" below it. */
export class Terminal {
  readonly #socket = `kcert-${process.pid}-${++count}`

  constructor(columns: number, command: string, folder = '.') {
    const line = `${command}; echo "ended $?"; sleep 3600`
    this.#tmux('new-session', '-d', '-x', String(columns), '-y', '50', '-c', folder, line)
    onTestFinished(() => {
      spawnSync('tmux', ['-L', this.#socket, 'kill-server'], { stdio: 'ignore' })
    })
  }

  /** Types text and keys, by their names in `tmux send-keys`. */
  type(...keys: string[]): void {
    this.#tmux('send-keys', ...keys)
  }

  /** Waits until the screen matches, and returns the screen. */
  async shows(wanted: RegExp): Promise<string> {
    for (let attempt = 0; attempt < 2_400; attempt++) {
      const screen = this.screen()
      if (wanted.test(screen)) return screen
      await new Promise((done) => setTimeout(done, 50))
    }
    throw new Error(`not shown: ${wanted}\n${this.screen()}`)
  }

  screen(): string {
    return this.#tmux('capture-pane', '-p')
  }

  /** Returns the lines of the screen, without empty ones at its end. */
  lines(): string[] {
    return this.screen().trimEnd().split('\n')
  }

  /** Returns the screen with its colour escapes. */
  coloured(): string {
    return this.#tmux('capture-pane', '-p', '-e')
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.#socket, '-f', '/dev/null', ...args], { encoding: 'utf8' })
  }
}
