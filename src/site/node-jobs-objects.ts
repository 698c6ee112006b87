import { hash } from 'node:crypto'
import { resources } from '../cluster/kinds.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { each, type Right } from '../cluster/rights.ts'

// The objects with which kcert reaches nodes by Jobs (docs/decisions/0021-nodes-by-jobs.md). Each run has its own namespace and
// admission policy, all of the run's name.

/** The beginning of the name of a run, and the name of its service account. */
export const jobsName = 'kcert-nodes'

const managed = { 'app.kubernetes.io/name': jobsName, 'app.kubernetes.io/managed-by': 'kcert' }

/** Selects the namespaces and policies of all runs. */
export const ofEveryRun = { labelSelector: `app.kubernetes.io/name=${jobsName}` }

/** The user name of kcert's own client certificates, which it presents when API servers no longer accept the user's. */
export const ownUser = 'kcert-rotation'

/** After this time a Job ends, also one of a kcert that was killed. A running kcert creates another when it needs the node. */
const longestJobSeconds = 2 * 3600

const nodeLabel = 'kcert.io/node'
export const containerName = 'node'
const command = ['sleep', 'infinity']
const root = '/host'

/** Returns the arguments that run a script on the node, from a container that sees its files. */
export function onNode(script: string): readonly string[] {
  return ['chroot', root, 'sh', '-c', script]
}

/** Returns the name of a node's Job in a run. A name of a node may be longer than that of a Job. */
export function jobName(node: string, count: number): string {
  const readable = node
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 36)
  return `${readable}-${keyOf(node)}-${count}`
}

/** Selects the pods of all Jobs of a run. */
export const podsOfEveryNode = { labelSelector: nodeLabel }

/** Selects the pods of a node's Jobs. */
export function podsOf(node: string): { readonly labelSelector: string } {
  return { labelSelector: `${nodeLabel}=${keyOf(node)}` }
}

function keyOf(node: string): string {
  return hash('sha256', node).slice(0, 10)
}

export interface JobsRun {
  /** The name of the namespace, the policy and its binding. */
  readonly name: string
  readonly image: string
  /** The users that may create Jobs and connect to their pods. */
  readonly users: readonly string[]
}

/**
 * Returns the name of a run. It contains the identity of its process, so that the next kcert recognizes what a killed one left. Unlike
 * a label, a name cannot change.
 */
export function runName(owner: string | undefined, random: Buffer): string {
  return [jobsName, ...(owner === undefined ? [] : [owner]), random.toString('hex')].join('-')
}

/** Returns the identity of a run's process, empty if the name has none. Returns undefined for a name that kcert does not create. */
export function ownerIn(name: string): string | undefined {
  const [found, owner = ''] = /^kcert-nodes-(?:([0-9a-f]{16}-\d+-\d+)-)?[0-9a-f]{8}$/.exec(name) ?? []
  return found && owner
}

/** Returns a pod that only waits, on a node that may have any taint. */
function podSpec({ image }: Pick<JobsRun, 'image'>, node: string) {
  return {
    // Without the scheduler: it would leave out a node that is cordoned or full.
    nodeName: node,
    tolerations: [{ operator: 'Exists' }],
    hostPID: true,
    hostNetwork: true,
    restartPolicy: 'OnFailure',
    terminationGracePeriodSeconds: 1,
    serviceAccountName: jobsName,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    volumes: [{ name: 'host', hostPath: { path: '/' } }],
    containers: [
      {
        name: containerName,
        image,
        imagePullPolicy: 'IfNotPresent',
        command,
        // systemctl would do nothing, because it finds itself in a chroot.
        env: [{ name: 'SYSTEMD_IGNORE_CHROOT', value: '1' }],
        securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0, runAsNonRoot: false },
        // Volumes of pods are mounts that come and go. The container must see new ones.
        volumeMounts: [{ name: 'host', mountPath: root, mountPropagation: 'HostToContainer' }],
      },
    ],
  }
}

/** Returns a pod as a node's Job creates it, for a dry run. */
export function podObject(run: JobsRun, node: string): ApiObject {
  const metadata = { name: jobName(node, 0), namespace: run.name, labels: managed }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec(run, node) }
}

export function jobObject(run: JobsRun, node: string, count: number): ApiObject {
  const labels = { ...managed, [nodeLabel]: keyOf(node) }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: jobName(node, count), namespace: run.name, labels },
    spec: {
      backoffLimit: 6,
      activeDeadlineSeconds: longestJobSeconds,
      ttlSecondsAfterFinished: 60,
      template: { metadata: { labels }, spec: podSpec(run, node) },
    },
  }
}

export function namespaceObject({ name }: JobsRun): ApiObject {
  const level = Object.fromEntries(
    ['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'privileged']),
  )
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { ...managed, ...level } } }
}

export function accountObject({ name }: JobsRun): ApiObject {
  const metadata = { name: jobsName, namespace: name, labels: managed }
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false }
}

/** Returns the policy that allows only kcert's Jobs and their pods in the namespace, and only these users to connect to them. */
export function policyObject({ name, image, users }: JobsRun): ApiObject {
  // JSON's strings and lists of strings are literals of CEL too.
  const literal = (value: unknown): string => JSON.stringify(value)
  const rule = (apiGroups: string[], operations: string[], its: string[]) => ({
    ...{ apiGroups, apiVersions: ['v1'], operations, resources: its },
  })
  const isConnect = 'request.operation == "CONNECT"'
  const c = 'variables.pod.containers[0]'
  const absent = (fields: readonly string[]): string =>
    fields.map((field) => `!has(${c}.${field})`).join(' && ')
  const validation = (expression: string, message: string) => ({ expression, message })
  return {
    ...admission('ValidatingAdmissionPolicy', name),
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
        resourceRules: [
          rule([''], ['CREATE', 'UPDATE'], ['pods', 'pods/ephemeralcontainers']),
          rule(['batch'], ['CREATE', 'UPDATE'], ['jobs']),
          rule([''], ['CONNECT'], ['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy']),
        ],
      },
      variables: [
        {
          name: 'pod',
          expression: 'request.resource.resource == "jobs" ? object.spec.template.spec : object.spec',
        },
      ],
      validations: [
        validation(
          `(${isConnect} || (request.operation == "CREATE" && request.resource.resource == "jobs")) ? request.userInfo.username in ${literal(users)} : true`,
          `only ${users.join(' and ')} may create Jobs here and connect to their pods`,
        ),
        validation(
          `${isConnect} || (variables.pod.containers.size() == 1 && !has(variables.pod.initContainers) && !has(variables.pod.ephemeralContainers))`,
          'a pod has one container',
        ),
        validation(`${isConnect} || ${c}.image == ${literal(image)}`, `the image is ${image}`),
        validation(
          `${isConnect} || (${c}.command == ${literal(command)} && ${absent(['args', 'lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'])})`,
          'the container only waits',
        ),
        validation(
          `${isConnect} || (variables.pod.serviceAccountName == ${literal(jobsName)} && variables.pod.automountServiceAccountToken == false && variables.pod.volumes.size() == 1)`,
          'a pod has no token',
        ),
      ],
    },
  }
}

export function bindingObject({ name }: JobsRun): ApiObject {
  const spec = { policyName: name, validationActions: ['Deny'] }
  return { ...admission('ValidatingAdmissionPolicyBinding', name), spec }
}

function admission(kind: string, name: string): ApiObject {
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name, labels: managed } }
}

/** Returns the permissions that kcert needs for this. The name of a run is random, so they are not of one namespace. */
export function jobsRights(): readonly Right[] {
  const { admissionPolicies, admissionPolicyBindings } = resources
  const cluster = [{ group: '', resource: 'namespaces' }, admissionPolicies, admissionPolicyBindings]
  return [
    ...cluster.flatMap(({ group, resource }) => each('create get list delete', { group, resource })),
    ...each('get', { group: '', resource: 'nodes' }),
    ...each('create', { group: '', resource: 'serviceaccounts' }),
    ...each('create get list', { group: 'batch', resource: 'jobs' }),
    ...each('create list watch', { group: '', resource: 'pods' }),
    // A WebSocket begins with GET. API servers before 1.35 require the permission of its verb.
    ...each('create get', { group: '', resource: 'pods/exec' }),
  ]
}
