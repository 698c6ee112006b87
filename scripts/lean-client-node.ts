import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Plugin } from 'esbuild'

// Of @kubernetes/client-node kcert needs KubeConfig: what a kubeconfig means, and how one authenticates with it. The module that
// holds it also imports the models of every Kubernetes API, an HTTP client, and clients of identity providers: 1.3 MB, which take
// longer to load than a request takes. src/cluster/client-node.ts imports this module for what is common (certificates, tokens,
// files, programs, HTTP proxies) and the package itself for what is not, so for the first these short modules stand in.

const module = '@kubernetes/client-node/dist/config.js'
const namespace = 'lean-client-node'

const absent = (name: string): string =>
  `export class ${name} { isAuthProvider() { return false } constructor() { ${name}.made = true } }`

const unreachable = 'throw new Error("not in this bundle: see scripts/lean-client-node.ts")'

/** What client-node's config.js imports → what stands for it. */
const standIns: Readonly<Record<string, string>> = {
  './gen/index.js': `export function createConfiguration() { ${unreachable} } export class ServerConfiguration {}`,
  './middleware.js': `export function setHeaderMiddleware() { ${unreachable} }`,
  // src/cluster/exec-credential.ts runs these programs, and client-node's way loads node:child_process for everybody.
  './exec_auth.js': absent('ExecAuth'),
  './oidc_auth.js': absent('OpenIDConnectAuth'),
  './azure_auth.js': absent('AzureAuth'),
  './gcp_auth.js': absent('GoogleCloudPlatformAuth'),
  // kcert hands over JSON, which src/kubeconfig made of the YAML.
  'js-yaml': 'export const load = JSON.parse',
  undici: 'export class Agent {} export class ProxyAgent {}',
  socks: 'export class SocksClient {}',
  'socks-proxy-agent': `export class SocksProxyAgent { constructor() { ${unreachable} } }`,
}

/** Returns the esbuild plugin that takes KubeConfig out of @kubernetes/client-node without the rest of it. */
export function leanClientNode(): Plugin {
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: /./ }, ({ path, importer, namespace: from }) => {
        if (path === module) return { path: resolve('node_modules', module), namespace }
        if (from !== namespace || importer === '' || !(path in standIns)) return undefined
        return { path, namespace: `${namespace}-stand-in`, sideEffects: false }
      })
      build.onLoad({ filter: /./, namespace }, ({ path }) => ({
        contents: readFileSync(path, 'utf8'),
        loader: 'js',
        resolveDir: dirname(path),
      }))
      build.onLoad({ filter: /./, namespace: `${namespace}-stand-in` }, ({ path }) => ({
        contents: standIns[path] ?? '',
        loader: 'js',
      }))
    },
  }
}
