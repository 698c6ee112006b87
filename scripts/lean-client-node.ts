import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Plugin } from 'esbuild'

// kcert needs only KubeConfig of @kubernetes/client-node: the meaning of a kubeconfig, and authentication with it. Its module
// also imports the models of every Kubernetes API, an HTTP client, and clients of identity providers: 1.3 MB, which take longer
// to load than a request takes. src/cluster/client-node.ts imports this bundle for common credentials (certificates, tokens,
// files, programs, HTTP proxies) and the full package for the others. In this bundle, the short modules below replace the unused
// imports.

const module = '@kubernetes/client-node/dist/config.js'
const namespace = 'lean-client-node'

const absent = (name: string): string =>
  `export class ${name} { isAuthProvider() { return false } constructor() { ${name}.made = true } }`

const unreachable = 'throw new Error("not in this bundle: see scripts/lean-client-node.ts")'

/** Import in client-node's config.js → its replacement. */
const standIns: Readonly<Record<string, string>> = {
  './gen/index.js': `export function createConfiguration() { ${unreachable} } export class ServerConfiguration {}`,
  './middleware.js': `export function setHeaderMiddleware() { ${unreachable} }`,
  // src/cluster/exec-credential.ts runs these programs. client-node's module would load node:child_process for every user.
  './exec_auth.js': absent('ExecAuth'),
  './oidc_auth.js': absent('OpenIDConnectAuth'),
  './azure_auth.js': absent('AzureAuth'),
  './gcp_auth.js': absent('GoogleCloudPlatformAuth'),
  // kcert passes JSON, which src/kubeconfig converts from YAML.
  'js-yaml': 'export const load = JSON.parse',
  undici: 'export class Agent {} export class ProxyAgent {}',
  socks: 'export class SocksClient {}',
  'socks-proxy-agent': `export class SocksProxyAgent { constructor() { ${unreachable} } }`,
}

/** Returns the esbuild plugin that bundles KubeConfig of @kubernetes/client-node without the rest of it. */
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
