import {
  type KubeadmCa,
  type KubeadmLeaf,
  type KubeadmRow,
  kubeadmCas,
  kubeadmFolders,
  kubeadmKubeconfigs,
  kubeadmLeaves,
  serviceAccountKey,
} from './kubeadm.ts'
import { currentLinkName, type KubeletFile, kubeletFile } from './kubelet.ts'

/** The absolute path of a file, and the folder that was walked to find it. */
export interface FoundFile {
  readonly path: string
  readonly root?: string | undefined
  /** True if the file was read and is not a kubeconfig: some installations use the name kubelet.conf for other files. */
  readonly isNoKubeconfig?: boolean
}

/** The role of a file in a tree from kubeadm or a kubelet. */
export type TreePlace =
  | {
      readonly tree: KubeadmTree
      readonly row: KubeadmRow
      readonly part: 'certificate' | 'key' | 'public-key' | 'kubeconfig'
    }
  | { readonly tree: KubeletTree; readonly file: KubeletFile; readonly name: string }

/** One node's /etc/kubernetes, or a copy of it in any location, or its pki folder alone. */
export interface KubeadmTree {
  readonly kind: 'kubeadm'
  /** `etcd`: a host of an external etcd, which has only the files of etcd and its client. */
  readonly node: 'control-plane' | 'worker' | 'etcd'
  /** The folder of the kubeconfigs; undefined when only the pki folder was given. */
  readonly kubernetesFolder: string | undefined
  readonly pkiFolder: string
  /** pki/etcd, or another folder when only a copy of it was given. */
  readonly etcdFolder: string
  /** False when etcd is managed externally, or its certificates are elsewhere. Then its files are not reported as missing. */
  readonly hasOwnEtcd: boolean
  /** False for a copy outside the location from which the node's components read it. */
  readonly isInPlace: boolean
}

/** One node's /var/lib/kubelet/pki, or a copy of it in any location. */
export interface KubeletTree {
  readonly kind: 'kubelet'
  readonly folder: string
  readonly isInPlace: boolean
}

export interface MissingFile {
  readonly path: string
  readonly role: string
  /** Its row in kubeadm's table; undefined for a kubelet's file. */
  readonly row?: KubeadmRow
  readonly part: 'certificate' | 'key' | 'public-key' | 'kubeconfig' | 'link'
  /** For a certificate: its key exists. */
  readonly hasKey?: boolean
}

/** The trees that were recognized among the files. */
export interface RecognisedTrees {
  /** Returns the role of a file by its path; undefined for files outside a tree. */
  locationOf(path: string): TreePlace | undefined
  /** Files that a complete tree would contain. Only folders that were walked completely can have missing files. */
  readonly missing: readonly MissingFile[]
}

interface PkiName {
  readonly row: KubeadmRow
  readonly part: 'certificate' | 'key' | 'public-key'
}

/** Every file name of kubeadm's pki folder, by its path in that folder. */
const pkiNames: ReadonlyMap<string, PkiName> = new Map<string, PkiName>([
  ...[...kubeadmCas, ...kubeadmLeaves].flatMap((row): [string, PkiName][] => [
    [`${row.file}.crt`, { row, part: 'certificate' }],
    [`${row.file}.key`, { row, part: 'key' }],
  ]),
  ['sa.key', { row: serviceAccountKey, part: 'key' }],
  ['sa.pub', { row: serviceAccountKey, part: 'public-key' }],
])

const kubeconfigNames = new Map(kubeadmKubeconfigs.map((row) => [row.name, row]))

// "ca" and kubelet.conf identify nothing: a worker has them too, and any folder may contain a ca.crt.
const tellingRows = new Set(
  [...pkiNames]
    .filter(([path]) => !path.includes('/') && !path.startsWith('ca.'))
    .map(([, { row }]) => row.name),
)
const controlPlaneKubeconfigs = kubeadmKubeconfigs
  .filter(({ name }) => name !== 'kubelet.conf')
  .map(({ name }) => name)

const tellingNames: ReadonlySet<string> = new Set([
  ...[...pkiNames.keys()].map(nameOf),
  ...kubeconfigNames.keys(),
])

type Folders = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Returns kubeadm's and kubelets' folders, recognized by the file names in them. Therefore a copy of a folder, or copies of
 * several nodes, are read in the same way as /etc/kubernetes. Reads paths only.
 */
export function recogniseTrees(files: Iterable<FoundFile>): RecognisedTrees {
  const { folders, roots } = foldersOf(files)
  const kubeadmTrees = findKubeadmTrees(folders)
  const kubeletTrees = findKubeletTrees(folders)
  const places = new Map<string, TreePlace>()
  for (const tree of kubeadmTrees) addKubeadmPlaces(tree, folders, places)
  for (const tree of kubeletTrees) addKubeletPlaces(tree, folders, places)
  const isWalked = (folder: string) =>
    [...roots].some((root) => folder === root || folder.startsWith(`${root}/`))
  return {
    locationOf: (path) => (places.size === 0 ? undefined : places.get(path)),
    missing: [
      ...kubeadmTrees.flatMap((tree) => missingOfKubeadm(tree, folders, isWalked)),
      ...kubeletTrees.flatMap((tree) => missingOfKubelet(tree, folders, isWalked)),
    ],
  }
}

/** Returns the folders of the files, with the significant names in them, and the folders that were walked. */
function foldersOf(files: Iterable<FoundFile>): { folders: Folders; roots: ReadonlySet<string> } {
  const folders = new Map<string, Set<string>>()
  const roots = new Set<string>()
  for (const { path, root, isNoKubeconfig } of files) {
    if (root !== undefined) roots.add(root.replace(/\/$/, ''))
    const [folder, name] = [parentOf(path), nameOf(path)]
    if (isNoKubeconfig && kubeconfigNames.has(name)) continue
    const names = folders.get(folder) ?? new Set()
    folders.set(folder, names)
    // Most names are not significant: 10,000 files must not cause 10,000 entries.
    if (tellingNames.has(name) || kubeletFile(name) !== undefined) names.add(name)
  }
  return { folders, roots }
}

function parentOf(folder: string): string {
  return folder.slice(0, Math.max(folder.lastIndexOf('/'), 0))
}

function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf('/') + 1)
}

function findKubeadmTrees(folders: Folders): KubeadmTree[] {
  const pkiFolders = new Set<string>()
  for (const [folder, names] of folders) {
    if (isPkiFolder(folder, names)) pkiFolders.add(folder)
    // Only etcd's part may have been given.
    else if (folder === `${kubeadmFolders.pki}/etcd`) pkiFolders.add(kubeadmFolders.pki)
  }
  // Some installations use another name than pki for the folder next to the kubeconfigs.
  const parents = new Set([...pkiFolders].map(parentOf))
  for (const [folder, names] of folders) {
    if (isKubernetesFolder(folder, names) && !parents.has(folder)) pkiFolders.add(`${folder}/pki`)
  }
  const trees = [...pkiFolders].map((pkiFolder): KubeadmTree => {
    const parent = parentOf(pkiFolder)
    const etcdFolder = `${pkiFolder}/etcd`
    const above = folders.get(parent)
    const hasKubeconfigs = above !== undefined && [...above].some((name) => kubeconfigNames.has(name))
    const names = folders.get(pkiFolder) ?? new Set()
    const rows = tellingRowsIn(names)
    const hasOwnEtcd = isEtcdFolder(folders.get(etcdFolder))
    const isEtcdHost =
      hasOwnEtcd && [...rows].every((row) => row === 'apiserver-etcd-client') && !hasKubeconfigs
    const isControlPlane =
      rows.size > 0 || (above !== undefined && controlPlaneKubeconfigs.some((name) => above.has(name)))
    return {
      kind: 'kubeadm',
      node: isEtcdHost ? 'etcd' : isControlPlane ? 'control-plane' : 'worker',
      kubernetesFolder: hasKubeconfigs ? parent : undefined,
      pkiFolder,
      etcdFolder,
      hasOwnEtcd,
      isInPlace: pkiFolder === kubeadmFolders.pki,
    }
  })
  return [...trees, ...etcdFoldersAlone(folders, new Set(trees.map(({ etcdFolder }) => etcdFolder)))]
}

function isEtcdFolder(names: ReadonlySet<string> | undefined): boolean {
  return ['server.crt', 'peer.crt', 'healthcheck-client.crt'].some((name) => names?.has(name))
}

/** Returns copies of pki/etcd without the surrounding tree. Only kubeadm's etcd has a health check client next to a server. */
function etcdFoldersAlone(folders: Folders, known: ReadonlySet<string>): KubeadmTree[] {
  const isEtcds = ([folder, names]: readonly [string, ReadonlySet<string>]): boolean =>
    !known.has(folder) &&
    names.has('healthcheck-client.crt') &&
    (names.has('server.crt') || names.has('peer.crt'))
  return [...folders].filter(isEtcds).map(([folder]) => ({
    kind: 'kubeadm',
    node: 'etcd',
    kubernetesFolder: undefined,
    pkiFolder: folder,
    etcdFolder: folder,
    hasOwnEtcd: true,
    isInPlace: false,
  }))
}

function tellingRowsIn(names: ReadonlySet<string>): ReadonlySet<string> {
  const rows = [...names].flatMap((name) => pkiNames.get(name)?.row.name ?? [])
  return new Set(rows.filter((row) => tellingRows.has(row)))
}

function isPkiFolder(folder: string, names: ReadonlySet<string>): boolean {
  // In other folders a ca.crt does not identify anything.
  if (folder === kubeadmFolders.pki && [...names].some((name) => pkiNames.has(name))) return true
  const count = tellingRowsIn(names).size
  return count >= 2 || (count === 1 && nameOf(folder) === 'pki')
}

function isKubernetesFolder(folder: string, names: ReadonlySet<string>): boolean {
  const count = [...kubeconfigNames.keys()].filter((name) => names.has(name)).length
  return count >= 2 || (count === 1 && nameOf(folder) === 'kubernetes')
}

function addKubeadmPlaces(tree: KubeadmTree, folders: Folders, places: Map<string, TreePlace>): void {
  for (const [path, { row, part }] of pkiNames) {
    if (tree.etcdFolder === tree.pkiFolder && !path.startsWith(etcdPart)) continue
    places.set(pathIn(tree, path), { tree, row, part })
  }
  if (tree.kubernetesFolder === undefined) return
  for (const name of folders.get(tree.kubernetesFolder) ?? []) {
    const row = kubeconfigNames.get(name)
    if (row !== undefined) places.set(`${tree.kubernetesFolder}/${name}`, { tree, row, part: 'kubeconfig' })
  }
}

const etcdPart = 'etcd/'

/** Returns the path of a file in the table. etcd's part may be in a separate folder. */
function pathIn({ pkiFolder, etcdFolder }: KubeadmTree, path: string): string {
  return path.startsWith(etcdPart) ? `${etcdFolder}/${path.slice(etcdPart.length)}` : `${pkiFolder}/${path}`
}

function rowsExpectedIn({ node, hasOwnEtcd }: KubeadmTree): readonly (KubeadmCa | KubeadmLeaf)[] {
  if (node === 'worker') return kubeadmCas.filter(({ name }) => name === 'ca')
  const rows = [...kubeadmCas, ...kubeadmLeaves]
  const isEtcds = ({ file }: KubeadmCa | KubeadmLeaf) => file.startsWith(etcdPart)
  if (node === 'etcd') return rows.filter(isEtcds)
  return hasOwnEtcd ? rows : rows.filter((row) => !isEtcds(row) && row.name !== 'apiserver-etcd-client')
}

function missingOfKubeadm(
  tree: KubeadmTree,
  folders: Folders,
  isWalked: (folder: string) => boolean,
): MissingFile[] {
  const has = (path: string) => folders.get(parentOf(path))?.has(nameOf(path)) ?? false
  const expected: MissingFile[] = []
  const expect = (path: string, role: string, row: KubeadmRow, part: MissingFile['part'], hasKey = false) =>
    expected.push({ path, role, row, part, hasKey })
  if (isWalked(tree.pkiFolder)) {
    for (const row of rowsExpectedIn(tree)) {
      const certificate = pathIn(tree, `${row.file}.crt`)
      const key = pathIn(tree, `${row.file}.key`)
      expect(certificate, row.name, row, 'certificate', has(key))
      // A CA's key may be elsewhere on purpose: kubeadm calls this an external CA.
      if (row.kind === 'leaf' && has(certificate)) expect(key, `${row.name} key`, row, 'key')
    }
    if (tree.node === 'control-plane') {
      expect(`${tree.pkiFolder}/sa.key`, 'sa key', serviceAccountKey, 'key')
      expect(`${tree.pkiFolder}/sa.pub`, 'sa public key', serviceAccountKey, 'public-key')
    }
  }
  if (tree.kubernetesFolder !== undefined && isWalked(tree.kubernetesFolder)) {
    for (const row of kubeadmKubeconfigs) {
      const { name, isOptional } = row
      if (isOptional || (tree.node === 'worker' && name !== 'kubelet.conf')) continue
      expect(`${tree.kubernetesFolder}/${name}`, name, row, 'kubeconfig')
    }
  }
  return expected.filter(({ path }) => !has(path))
}

function findKubeletTrees(folders: Folders): KubeletTree[] {
  const home = kubeadmFolders.kubeletPki
  return [...folders]
    .filter(([folder, names]) => folder === home || [...names].some((name) => kubeletFile(name)))
    .map(([folder]) => ({ kind: 'kubelet', folder, isInPlace: folder === home }))
}

function addKubeletPlaces(tree: KubeletTree, folders: Folders, places: Map<string, TreePlace>): void {
  for (const name of folders.get(tree.folder) ?? []) {
    const file = kubeletFile(name)
    if (file !== undefined) places.set(`${tree.folder}/${name}`, { tree, file, name })
  }
}

function missingOfKubelet(
  tree: KubeletTree,
  folders: Folders,
  isWalked: (folder: string) => boolean,
): MissingFile[] {
  if (!isWalked(tree.folder)) return []
  const names = folders.get(tree.folder) ?? new Set()
  const roles = [...names].flatMap((name) => {
    const file = kubeletFile(name)
    return file?.part === 'pair' || file?.part === 'updated' ? [file.role] : []
  })
  return [...new Set(roles)]
    .map((role) => ({ path: `${tree.folder}/${currentLinkName(role)}`, role, part: 'link' as const }))
    .filter(({ path }) => !names.has(nameOf(path)))
}
