import { KcertError } from '../errors/kcert-error.ts'
import { isHost, isThisMachine } from '../pki/node-address.ts'

/** The values for {node} and {address} in the words of an access. */
export type NodePlace = Readonly<Record<'node' | 'address', string>>

/**
 * Returns one argument with {node} and {address} filled in. No other function does this, because kubelets write the addresses of
 * their Nodes. Throws KCERT_NODE_NAME_REFUSED for a value that is neither a host name nor an IP address. Such a value could be an
 * option of the program (`-oProxyCommand=…` of ssh) or a shell command. Throws it also for loopback addresses and localhost: the
 * program would change the operator's machine instead of the node.
 */
export function filledIn(word: string, place: NodePlace): string {
  return word.replaceAll(/\{(node|address)\}/g, (_, part: keyof NodePlace) => checkedHost(part, place))
}

function checkedHost(part: keyof NodePlace, place: NodePlace): string {
  const value = place[part]
  const isHere = isThisMachine(value)
  if (isHost(value) && !isHere) return value
  const what = part === 'node' ? 'node name' : `address of node ${JSON.stringify(place.node)}:`
  throw new KcertError('KCERT_NODE_NAME_REFUSED', `invalid ${what} ${JSON.stringify(value)}`, {
    why: `${isHere ? 'the command that reaches the node would reach this machine instead' : 'it is neither a host name (RFC 1123) nor an IP address, and would become an argument of the command that reaches the node'}. An attacker who controls the node may have set it`,
    next: 'kubectl get nodes -o wide',
  })
}
