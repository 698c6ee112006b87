import type { CommandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { TransportEnd } from './transport.ts'

const refusals =
  /^sudo: .*(?:password is required|not in the sudoers|not allowed|must have a tty|may not run)/m

/** Returns the error for a refusal by sudo, or undefined if it is not one. */
export function explainSudo(title: CommandLine, { stderr }: TransportEnd): KcertError | undefined {
  const refusal = refusals.exec(stderr)?.[0] ?? /^.* is not in the sudoers file.*$/m.exec(stderr)?.[0]
  if (refusal === undefined) {
    if (!/\bsudo: (?:command )?not found|"?sudo"?: executable file not found/.test(stderr)) return undefined
    return new KcertError('KCERT_NODE_UNFIT', `sudo is not installed on the node that "${title}" reaches`, {
      why: 'the inventory has "become: sudo" for this node: install sudo there, or log in as root and remove "become"',
    })
  }
  return new KcertError('KCERT_NODE_REFUSED', `sudo rejects kcert on the node that "${title}" reaches`, {
    why: `${refusal}. kcert runs sudo -n, which cannot ask for a password: give that user "ALL=(root) NOPASSWD: /bin/sh" in /etc/sudoers.d, or log in as root and remove "become" from the inventory`,
  })
}
