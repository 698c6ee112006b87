import { systemCode } from '../errors/caught.ts'
import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { startProcess } from '../system/running-program.ts'
import { explainSudo } from './sudo.ts'
import { type Become, shellVector, type Transport, type TransportEnd } from './transport.ts'

/**
 * Returns a transport that uses a command which runs its arguments on the node: `docker exec -i cp1`, `nsenter -t 1 -m --`,
 * `kubectl debug node/cp1 -qi --image=busybox -- chroot /host`. The command must forward its input and must not allocate a
 * terminal.
 */
export function commandTransport(argv: readonly string[], become?: Become): Transport {
  const title = commandLine`${argumentVector(argv)}`
  return {
    title,
    start: async (script) => startProcess([...argv, ...shellVector(script, become)]),
    explain: (end) => explainSudo(title, end) ?? explainProgram(argv[0] ?? '', end),
    close: async () => {},
  }
}

function explainProgram(program: string, { cause }: TransportEnd): KcertError | undefined {
  if (systemCode(cause) !== 'ENOENT') return undefined
  return new KcertError('KCERT_USAGE', `"${program}" is not installed`, {
    why: 'it is the first word of the command that reaches the node: install it, or correct the command in the inventory',
    cause,
  })
}
