import { commandLine } from '../errors/command-line.ts'
import { commandTransport } from './command.ts'
import type { Become, Transport } from './transport.ts'

/** Returns a transport to the machine that kcert runs on. */
export function localTransport(become?: Become): Transport {
  return {
    ...commandTransport([], become),
    title: become === 'sudo' ? commandLine`sudo sh` : commandLine`sh`,
  }
}
