import type { CommandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { TransportEnd } from './transport.ts'

const refusals =
  /^sudo: .*(?:password is required|not in the sudoers|not allowed|must have a tty|may not run)/m

/** Returns what a refusal by sudo means, or undefined when it is none. */
export function explainSudo(title: CommandLine, { stderr }: TransportEnd): KcertError | undefined {
  const refusal = refusals.exec(stderr)?.[0] ?? /^.* is not in the sudoers file.*$/m.exec(stderr)?.[0]
  if (refusal === undefined) {
    if (!/\bsudo: (?:command )?not found|"?sudo"?: executable file not found/.test(stderr)) return undefined
    return new KcertError('KCERT_NODE_UNFIT', `there is no sudo at the end of: ${title}`, {
      why: 'the inventory says become: sudo',
      next: 'install sudo on the node, or log in as root and leave become out',
    })
  }
  return new KcertError('KCERT_NODE_REFUSED', `sudo refuses to make kcert root at the end of: ${title}`, {
    why: `${refusal}; kcert asks it with -n, since nobody could type a password there`,
    next: 'give that user "ALL=(root) NOPASSWD: /bin/sh" in /etc/sudoers.d, or log in as root and leave become out',
  })
}
