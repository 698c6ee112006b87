import { describe, expect, test } from 'vitest'
import { controlPlaneTree, workerTree } from '../../test/pki/kubeadm-tree.ts'
import { recogniseTrees, type TreePlace } from './kubeadm-tree.ts'

const madeAt = new Date('2026-06-01T08:00:00Z')
const controlPlane = [...controlPlaneTree({ madeAt }).files.keys()]
const worker = [...workerTree({ madeAt }).files.keys()]

const found = (paths: readonly string[], root?: string) =>
  paths.map((path) => ({ path, ...(root !== undefined && { root }) }))
const nameOf = (place: TreePlace | undefined) =>
  place === undefined
    ? undefined
    : 'row' in place
      ? `${place.row.name} ${place.part}`
      : `${place.file.role} ${place.file.part}`

describe('recogniseTrees', () => {
  test('recognizes every file of a control plane, and reports none as missing', () => {
    const trees = recogniseTrees(found(controlPlane, '/'))
    const unnamed = controlPlane.filter((path) => trees.locationOf(path) === undefined)
    expect(unnamed).toEqual(['/etc/kubernetes/manifests/kube-apiserver.yaml'])
    expect(trees.missing).toEqual([])
    expect(trees.locationOf('/etc/kubernetes/admin.conf')).toMatchObject({
      tree: { node: 'control-plane', hasOwnEtcd: true, isInPlace: true },
    })
  })

  test('recognizes every file of a worker, and reports none as missing', () => {
    const trees = recogniseTrees(found(worker, '/'))
    expect(worker.filter((path) => trees.locationOf(path) === undefined)).toEqual([])
    expect(trees.missing).toEqual([])
    expect(trees.locationOf('/etc/kubernetes/pki/ca.crt')).toMatchObject({ tree: { node: 'worker' } })
  })

  test('keeps the copies of several nodes separate', () => {
    const paths = [...controlPlane.map((path) => `/b/cp1${path}`), ...worker.map((path) => `/b/w1${path}`)]
    const trees = recogniseTrees(found(paths, '/b'))
    const at = (path: string) => trees.locationOf(path)!.tree
    expect(at('/b/cp1/etc/kubernetes/pki/ca.crt')).toMatchObject({ node: 'control-plane', isInPlace: false })
    expect(at('/b/w1/etc/kubernetes/pki/ca.crt')).toMatchObject({ node: 'worker' })
    expect(at('/b/cp1/etc/kubernetes/pki/ca.crt')).not.toBe(at('/b/w1/etc/kubernetes/pki/ca.crt'))
    expect(trees.missing).toEqual([])
  })

  test.each([
    [['/etc/kubernetes/pki/apiserver.crt'], 'apiserver certificate'],
    [['/etc/kubernetes/pki/etcd/server.key'], 'etcd-server key'],
    [['/etc/kubernetes/pki/sa.pub'], 'sa public-key'],
    [['/etc/kubernetes/admin.conf'], 'admin.conf kubeconfig'],
    [['/backup/pki/apiserver.crt'], 'apiserver certificate'],
    [['/var/lib/kubelet/pki/kubelet-client-current.pem'], 'kubelet-client current'],
    [['/x/kubelet-server-2026-01-02-03-04-05.pem'], 'kubelet-serving pair'],
    [['/var/lib/kubelet/pki/kubelet.crt'], 'kubelet-serving self-signed'],
  ])('recognizes a single given file by its path: %j', (paths, expected) => {
    const trees = recogniseTrees(found(paths))
    expect(nameOf(trees.locationOf(paths[0]!))).toBe(expected)
    expect(trees.missing).toEqual([])
  })

  test.each([
    ['a ca.crt in a home directory', ['/home/jane/ca.crt', '/home/jane/ca.key']],
    ['a server certificate outside kubeadm folders', ['/srv/apiserver.crt', '/srv/apiserver.key']],
    ['an admin.conf in a home directory', ['/home/jane/admin.conf']],
    ['an etcd folder outside kubeadm folders', ['/srv/etcd/server.crt', '/srv/etcd/ca.crt']],
  ])('does not recognize %s as kubeadm’s', (_name, paths) => {
    const trees = recogniseTrees(found(paths, '/'))
    expect(paths.map((path) => trees.locationOf(path))).toEqual(paths.map(() => undefined))
    expect(trees.missing).toEqual([])
  })

  test.each([
    [
      'a cluster installed without kubeadm',
      [
        '/etc/kubernetes/pki/ca.pem',
        '/etc/kubernetes/pki/apiserver.pem',
        '/etc/kubernetes/kubelet.kubeconfig',
      ],
    ],
    ['a folder with only a ca.crt', ['/srv/pki/ca.crt']],
  ])('reports nothing as missing from %s', (_name, paths) => {
    expect(recogniseTrees(found(paths, '/')).missing).toEqual([])
  })

  test('accepts another name for the folder next to the kubeconfigs, as in kubespray', () => {
    const paths = controlPlane.map((path) => path.replace('/kubernetes/pki/', '/kubernetes/ssl/'))
    const trees = recogniseTrees(found(paths, '/etc/kubernetes'))
    expect(nameOf(trees.locationOf('/etc/kubernetes/ssl/etcd/peer.crt'))).toBe('etcd-peer certificate')
    expect(trees.missing).toEqual([])
  })

  test('recognizes no worker if kubelet.conf is not a kubeconfig', () => {
    const file = { path: '/etc/kubernetes/kubelet.conf', root: '/etc/kubernetes' }
    expect(recogniseTrees([file]).missing.map(({ path }) => path)).toEqual(['/etc/kubernetes/pki/ca.crt'])
    expect(recogniseTrees([{ ...file, isNoKubeconfig: true }]).missing).toEqual([])
  })

  test('reports files missing from a folder that was walked, and none from other folders', () => {
    const pki = ['/k/pki/apiserver.crt', '/k/pki/front-proxy-ca.crt', '/k/pki/ca.crt']
    const missing = recogniseTrees(found(pki, '/k/pki')).missing.map(({ path }) => path)
    expect(missing).toContain('/k/pki/apiserver.key')
    expect(missing).toContain('/k/pki/sa.key')
    expect(missing).not.toContain('/k/pki/etcd/server.crt')
    expect(missing).not.toContain('/k/admin.conf')
  })
})
