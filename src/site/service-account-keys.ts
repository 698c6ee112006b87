import { posix } from 'node:path'
import { wordsOf } from '../errors/kcert-error.ts'
import { readDocumentOfKind } from '../kubeconfig/documents.ts'
import { itemsOf, textOf, valueAt } from '../kubeconfig/node.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import type { FoundToken, NodeTokens, Reading } from '../rotation/service-account-key/observed.ts'
import { readServiceAccountToken, type ServiceAccountToken } from '../x509/service-account-token.ts'
import { textOf as contentOf } from './node-files.ts'
import type { Site } from './site.ts'

// The keys with which API servers verify tokens, and the tokens on nodes. Tokens stay in this file: it returns key IDs and claims.

const call = { timeoutMs: 120_000 }

/** Returns the result, or why there is none. */
export async function reading<Value>(read: () => Promise<Value>): Promise<Reading<Value>> {
  try {
    return { value: await read() }
  } catch (error) {
    return { unread: wordsOf(error) }
  }
}

/** Returns the IDs of the keys with which the API server of a node verifies tokens. Throws for an answer that is not a key set. */
export async function servedKeyIds(site: Site, node: string): Promise<readonly string[]> {
  return servedIn(await site.readAt(node, '/openid/v1/jwks'))
}

/** Returns the IDs of a JSON Web Key Set (RFC 7517). Throws for anything else. */
function servedIn({ keys }: Readonly<Record<string, unknown>>): readonly string[] {
  const ids = Array.isArray(keys) ? keys.map((key: unknown) => (key as { kid?: unknown } | null)?.kid) : []
  const valid = ids.filter((id): id is string => typeof id === 'string' && id !== '' && id.length <= 1024)
  if (valid.length === 0 || valid.length < ids.length)
    throw new Error('the answer has a key without kid, or no key')
  // A key that is in two files is listed twice.
  return [...new Set(valid)]
}

// Prints a line for each token: m (mounted) or f (in a file), header and claims, path. The signature stays on the node. What cannot
// be read ends the script with an error: a path below a folder that cannot be searched looks absent. A kubelet replaces the folder
// ..data and deletes pods at any time, so a search that fails is repeated for each of its folders. A node may have thousands of
// volumes, so a few processes read the files of 100 of them.
const script = `
reader=$1 program=$2 root=$3 kubelet=$4; shift 4
LC_ALL=C; export LC_ALL program
fail() { printf '%s\\n' "$1" >&2; exit 3; }
for tool in find head tr awk; do command -v "$tool" >/dev/null || fail "$tool is not installed"; done
absent() {
  [ ! -e "$1" ] || return 1
  above=$1
  while above=\${above%/*}; [ -n "$above" ]; do
    [ -e "$above" ] || continue
    [ -x "$above" ] || fail "$above cannot be read"
    break
  done
}
search() {
  kind=$1; shift
  find -H "$@" '(' -type f -size -2048 -o -type l ')' -exec sh -c "$reader" sh "$kind" {} +
}
one_by_one() {
  kind=$1; shift
  for place in "$@"; do
    if lines=$(search "$kind" "$place" 2>/dev/null); then :
    elif [ -e "$place" ]; then lines=$(search "$kind" "$place") || fail "$place cannot be read"
    else lines=
    fi
    [ -z "$lines" ] || printf '%s\\n' "$lines"
  done
}
tokens() {
  lines=$(search "$@" 2>/dev/null) || lines=$(one_by_one "$@") || exit 3
  [ -z "$lines" ] || printf '%s\\n' "$lines"
}
mounted() {
  set --
  for pod in "$root"/pods/*; do
    volumes=$pod/volumes/kubernetes.io~projected
    absent "$volumes" && continue
    [ -r "$volumes" ] || fail "$volumes cannot be read"
    for volume in "$volumes"/*; do
      absent "$volume/..data" || set -- "$@" "$volume/..data"
      [ $# -lt 100 ] || { tokens m "$@"; set --; }
    done
  done
  [ $# -eq 0 ] || tokens m "$@"
}
if absent "$root/pods"; then
  [ "$kubelet" = stopped ] || fail "$root/pods does not exist"
else
  [ -r "$root/pods" ] || fail "$root/pods cannot be read"
  mounted
fi
while [ "$1" != -- ]; do
  absent "$1" || tokens f "$1"
  shift
done
shift
for file in "$@"; do
  absent "$file" && fail "$file does not exist"
done
exit 0
`

// Reads some files. head prints "==> PATH <==" before each of them, and "end" is missing if it fails. Links to folders are rare:
// the time of the second loop is quadratic in the number of files.
const reader = `
kind=$1 others=; shift
for file do
  case $file in *'
'*) printf 'a file name in %s has a line break\\n' "\${file%/*}" >&2; exit 3 ;; esac
  [ -f "$file" ] || { others=1; continue; }
  [ -r "$file" ] || { printf '%s cannot be read\\n' "$file" >&2; exit 3; }
done
[ -z "$others" ] || for file do
  shift
  [ ! -f "$file" ] || set -- "$@" "$file"
done
[ $# -gt 0 ] || exit 0
{ head -c 1048576 /dev/null "$@" && printf '\\n==> end <==\\n'; } | tr '\\000' '\\n' | awk "$program" "$kind" "$@" end
`

// In JSON, a token may follow \n. Only the next header in order counts: a file may contain others.
const program = `
BEGIN {
  kind = ARGV[1]
  for (n = 2; n < ARGC; n++) path[n - 1] = ARGV[n]
  last = ARGC - 2
  ARGC = 1
}
at < last && $0 == "==> " path[at + 1] " <==" { at++; next }
index($0, "eyJ") {
  count = split($0, runs, /[^A-Za-z0-9_.-]+/)
  for (n = 1; n <= count; n++) {
    if (!match(runs[n], /^[nrt]?eyJ[A-Za-z0-9_-]*[.]eyJ[A-Za-z0-9_-]*[.]/)) continue
    signature = substr(runs[n], RLENGTH + 1, 16)
    if (length(signature) < 16 || index(signature, ".")) continue
    token = substr(runs[n], 1, RLENGTH - 1)
    sub(/^[nrt]/, "", token)
    print kind, token, path[at < last ? at : last - 1]
  }
}
END { exit at < last ? 3 : 0 }
`

/** Files with tokens in addition to those of pods: kubeconfigs of CNI plugins, of components and of root. */
const tokenPlaces = ['/etc/kubernetes', '/etc/cni/net.d', '/root/.kube']

/** Returns the tokens on a node, without their signatures, which never leave it. Throws if a folder cannot be read. */
export async function tokensOn(node: NodeAccess, kubeconfigs: readonly string[]): Promise<NodeTokens> {
  const [kubelet] = await node.processes(['kubelet'], call)
  const flags = flagsOf(kubelet?.argv ?? [])
  const root = flags['root-dir']?.replace(/\/+$/, '') ?? '/var/lib/kubelet'
  const others = kubeconfigs.filter((path) => !tokenPlaces.some((folder) => path.startsWith(`${folder}/`)))
  const state = kubelet === undefined ? 'stopped' : 'running'
  const argv = [
    'sh',
    '-c',
    script,
    'sh',
    reader,
    program,
    root,
    state,
    ...tokenPlaces,
    ...others,
    '--',
    ...kubeconfigs,
  ]
  const { status, stdout, stderr } = await node.run(argv, call)
  if (status !== 0) throw new Error(stderr.trim().slice(0, 200) || `status ${status}`)
  const mounted: ServiceAccountToken[] = []
  const files: FoundToken[] = []
  for (const line of Buffer.from(stdout).toString('utf8').split('\n')) {
    const [, kind, text = '', path = ''] = /^([mf]) (\S+) (.*)$/.exec(line) ?? []
    const claims = readServiceAccountToken(`${text}.signature`)
    if (claims === undefined) continue
    if (kind === 'm') mounted.push(claims)
    else files.push({ kind: 'file', location: `${node.name}:${path}`, claims })
  }
  return { mounted, files, credentialProviders: await credentialProvidersOn(node, flags) }
}

/**
 * Returns the image credential providers for which a kubelet with these flags requests tokens (pkg/credentialprovider/plugin/config.go).
 * Throws if their configuration cannot be read.
 */
async function credentialProvidersOn(
  node: NodeAccess,
  { 'image-credential-provider-config': at = '' }: Flags,
): Promise<NodeTokens['credentialProviders']> {
  if (at === '') return []
  const path = posix.resolve('/', at)
  // Since 1.34, it may be a folder.
  const listing = await node.listFolder(path, call)
  const paths =
    listing.found === 'folder'
      ? listing.entries
          .filter(({ kind, name }) => kind !== 'folder' && /\.(?:json|ya?ml)$/.test(name))
          .map(({ name }) => posix.join(path, name))
      : [path]
  const found = (await node.readFiles(paths, call)).map(async (file) => {
    const root =
      file.found === 'file'
        ? await readDocumentOfKind(contentOf(file), 'CredentialProviderConfig')
        : 'cannot be read'
    if (typeof root === 'string')
      throw new Error(`${file.path} (--image-credential-provider-config): ${root}`)
    return itemsOf(valueAt(root, 'providers')).flatMap((provider) => {
      const audience = textOf(valueAt(provider, 'tokenAttributes', 'serviceAccountTokenAudience'))
      return audience ? [{ name: textOf(valueAt(provider, 'name')) ?? '', audience }] : []
    })
  })
  return (await Promise.all(found)).flat()
}
