import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A headless Chromium, driven over its DevTools protocol. Node has a built-in WebSocket, so no package is needed.

const names = ['chromium', 'chromium-browser', 'google-chrome']

/** The browser of this machine; undefined if there is none. */
export const chromium = names.find((name) => spawnSync(name, ['--version']).status === 0)

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** One page of a browser. */
export class Browser {
  readonly #process: ChildProcess
  readonly #folder: string
  readonly #waiting = new Map<number, (message: Message) => void>()
  #socket: WebSocket | undefined
  #last = 0
  /** Events from the browser: requests, console messages, violations of a page's policy. */
  readonly events: { readonly method: string; readonly params: Record<string, unknown> }[] = []

  constructor(program: string) {
    this.#folder = mkdtempSync(join(tmpdir(), 'kcert-browser-'))
    this.#process = spawn(
      program,
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars'],
        ...['--no-first-run', '--disable-extensions', '--disable-background-networking'],
        ...[`--user-data-dir=${this.#folder}`, '--remote-debugging-port=0', 'about:blank'],
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
  }

  async start(): Promise<void> {
    const origin = await this.#announced()
    const socket = new WebSocket(await firstPage(origin))
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data)) as Message))
    await new Promise((done, failed) => {
      socket.addEventListener('open', done)
      socket.addEventListener('error', failed)
    })
    for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await this.ask(`${domain}.enable`)
    await this.ask('Page.setLifecycleEventsEnabled', { enabled: true })
  }

  /** Returns the browser's response to one command of the protocol. */
  async ask(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#last
    const answer = new Promise<Message>((done) => this.#waiting.set(id, done))
    this.#socket!.send(JSON.stringify({ id, method, params }))
    const { result, error } = await answer
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result ?? {}
  }

  /** Opens a file and waits until it is loaded. */
  async open(path: string): Promise<void> {
    this.events.length = 0
    const { loaderId } = await this.ask('Page.navigate', { url: `file://${path}` })
    // The previous page may still send its own load event.
    const isLoaded = (): boolean =>
      this.events.some(
        ({ method, params }) =>
          method === 'Page.lifecycleEvent' && params.name === 'load' && params.loaderId === loaderId,
      )
    await until(`${path} is loaded`, isLoaded)
  }

  /** Opens a file in a window of this width. Below 500 pixels it emulates a phone. */
  async show(path: string, width: number, scheme: 'light' | 'dark'): Promise<void> {
    const metrics = { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 }
    await this.ask('Emulation.setDeviceMetricsOverride', metrics)
    await this.ask('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    })
    await this.open(path)
  }

  /** Returns the width of the page, including content that overflows the window. */
  async shownWidth(): Promise<number> {
    return Number(await this.evaluate('document.documentElement.scrollWidth'))
  }

  /** Returns the value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.ask('Runtime.evaluate', { expression, returnByValue: true })
    return (result as { value?: unknown }).value
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#process.once('close', done))
    this.#socket?.close()
    this.#process.kill()
    await ended
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20 })
  }

  #announced(): Promise<string> {
    return new Promise((done, failed) => {
      let said = ''
      this.#process.stderr!.on('data', (chunk) => {
        said += String(chunk)
        const origin = /DevTools listening on ws:\/\/([^/]+)\//.exec(said)?.[1]
        if (origin !== undefined) done(origin)
      })
      this.#process.once('close', () => failed(new Error(said)))
    })
  }

  #take(message: Message): void {
    const { id, method, params = {} } = message
    if (id !== undefined) this.#waiting.get(id)?.(message)
    else if (method !== undefined) this.events.push({ method, params })
  }
}

/** A browser that just started may not have a page yet. */
async function firstPage(origin: string): Promise<string> {
  let url: string | undefined
  await until('the browser has a page', async () => {
    const pages = (await (await fetch(`http://${origin}/json`)).json()) as {
      type: string
      webSocketDebuggerUrl: string
    }[]
    url = pages.find(({ type }) => type === 'page')?.webSocketDebuggerUrl
    return url !== undefined
  })
  return url!
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 6_000; attempt++) {
    if (await holds()) return
    await new Promise((done) => setTimeout(done, 20))
  }
  throw new Error(`not within two minutes: ${what}`)
}
