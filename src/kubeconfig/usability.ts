import { entriesOf, itemsOf, type Node, textOf, valueAt } from './node.ts'

// Why client-go creates no client from a context although it loads the file (client-go 0.36.3: tools/clientcmd/validation.go,
// plugin/pkg/client/auth). The caller handles missing files, because it can access them.

export interface UsabilityFault {
  /** Path below the cluster or user: "exec.command"; empty for the whole entry. */
  readonly field: string
  readonly reason: string
  readonly next?: string
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const interactiveModes = ['Never', 'IfAvailable', 'Always']
const removedProviders: Readonly<Record<string, string>> = {
  gcp: 'gke-gcloud-auth-plugin',
  azure: 'kubelogin',
}

/** Returns why clients reject every context with this user. */
export function* userFaults(user: Node | undefined): Generator<UsabilityFault> {
  const exec = present(valueAt(user, 'exec'))
  const provider = present(valueAt(user, 'auth-provider'))
  if (exec !== undefined) yield* execFaults(exec)
  if (exec !== undefined && provider !== undefined)
    yield {
      field: 'auth-provider',
      reason: 'used together with exec: clients accept only one of them, so remove the other',
    }
  if (provider !== undefined) yield* providerFaults(provider)
  const says = (field: string): boolean => Boolean(textOf(valueAt(user, field)))
  if (says('token') && (says('username') || says('password')))
    yield {
      field: 'token',
      reason:
        'used together with a user name or password: clients accept only one of them, so remove the other',
    }
  const others = ['as-uid', 'as-groups', 'as-user-extra'].filter((field) => isFilled(valueAt(user, field)))
  if (others[0] !== undefined && !says('as'))
    yield { field: others[0], reason: 'without "as": the user to impersonate is missing' }
}

function* execFaults(exec: Node): Generator<UsabilityFault> {
  const version = textOf(valueAt(exec, 'apiVersion'))
  const mode = textOf(valueAt(exec, 'interactiveMode'))
  const isOld = version !== undefined && /^client\.authentication\.k8s\.io\/v1(?:alpha|beta)1$/.test(version)
  if (!textOf(valueAt(exec, 'command'))) yield { field: 'exec.command', reason: 'missing' }
  if (!version) yield { field: 'exec.apiVersion', reason: `missing: ${execVersions[0]} is the current one` }
  else if (!execVersions.includes(version))
    yield { field: 'exec.apiVersion', reason: `clients support ${execVersions.join(' and ')}` }
  if (mode ? !interactiveModes.includes(mode) : !isOld)
    yield {
      field: 'exec.interactiveMode',
      reason: `${mode ? 'not one of' : 'missing: one of'} ${interactiveModes.join(', ')}`,
    }
  if (itemsOf(valueAt(exec, 'env')).some((item) => !textOf(valueAt(item, 'name'))))
    yield { field: 'exec.env', reason: 'a variable without a name' }
}

function* providerFaults(provider: Node): Generator<UsabilityFault> {
  const name = textOf(valueAt(provider, 'name')) ?? ''
  if (name !== 'oidc') {
    const plugin = Object.hasOwn(removedProviders, name) ? removedProviders[name] : undefined
    yield {
      field: 'auth-provider.name',
      reason: plugin
        ? `${name} was removed from kubectl and client-go in 1.26; use the exec plugin ${plugin}`
        : 'clients support only oidc',
    }
    return
  }
  for (const key of ['idp-issuer-url', 'client-id'])
    if (!textOf(valueAt(provider, 'config', key)))
      yield { field: `auth-provider.config.${key}`, reason: 'missing' }
}

const percentEscape = '%[\\da-f]{2}'
const user = `(?:[\\w.~!$&'()*+,;=:@-]|${percentEscape})*@`
const ipv6 = '\\[([\\da-f:.]+)(?:%25[^\\][/?#]+)?\\]'
const hostName = `(?:[\\w.~!$&'()*+,;=\\]<>"-]|[\\u0080-\\uffff]|%(?:25|[89a-f][\\da-f]))*`
const authority = `(?:${user})?(?!$|[/?#])(?:${ipv6}|${hostName})(?::\\d*)?`
const path = `/(?:[ -"$&->@-~\\u0080-\\uffff]|${percentEscape})*`
const query = '\\?[ -"$-~\\u0080-\\uffff]*'
const fragment = `#(?:[^%]|${percentEscape})*`
const ending = `(?:${query})?(?:${fragment})?$`
const asUrl = new RegExp(`^[a-z][a-z\\d+.-]*://${authority}(?:${path})?${ending}`, 'is')
const asHost = new RegExp(`^${authority}/?${ending}`, 'is')

/** Returns true for what DefaultServerURL of client-go accepts: the rules of net/url in Go 1.26, or a host without a path. */
function isServerAddress(server: string): boolean {
  const found = asUrl.exec(server) ?? asHost.exec(server)
  return found !== null && (found[1] === undefined || URL.canParse(`http://[${found[1]}]`))
}

/** Returns why clients reject every context with this cluster. A missing server is not included. */
export function* clusterFaults(cluster: Node | undefined): Generator<UsabilityFault> {
  const server = textOf(valueAt(cluster, 'server'))
  if (server && !isServerAddress(server)) yield { field: 'server', reason: 'neither a URL nor HOST:PORT' }
  const proxy = textOf(valueAt(cluster, 'proxy-url'))
  if (proxy && !/^(?:https?|socks5):/i.test(proxy))
    yield { field: 'proxy-url', reason: 'not a URL with http, https or socks5' }
}

function present(node: Node | undefined): Node | undefined {
  return node?.kind === 'map' ? node : undefined
}

function isFilled(node: Node | undefined): boolean {
  return Boolean(textOf(node)) || itemsOf(node).length > 0 || entriesOf(node).length > 0
}
