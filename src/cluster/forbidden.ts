import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'

// What the API server says where RBAC allows nothing, and where a right on a signer is missing (k8s.io/apiserver
// .../handlers/responsewriters, k8s.io/kubernetes plugin/pkg/admission/certificates).
const byRbac =
  /\bUser "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/
const bySigner = /\buser not permitted to (approve|sign) requests with signerName "([^"]+)"/

/** Returns the command by which somebody who may gives the right whose lack the API server speaks of; undefined when it names none. */
export function commandForRight(message: string): CommandLine | undefined {
  const [, user, verb, resource, group, namespace] = byRbac.exec(message) ?? []
  if (user !== undefined && verb !== undefined && resource !== undefined) {
    const [plural = '', subresource] = resource.split('/')
    const full = `${group ? `${plural}.${group}` : plural}${subresource ? `/${subresource}` : ''}`
    const role = namespace === undefined ? 'clusterrole' : 'role'
    const flag = namespace === undefined ? undefined : embed(commandLine`-n ${namespace}`)
    const name = `${verb}-${resource.replace('/', '-')}`
    return commandLine`kubectl create ${role} ${name} --verb=${verb} --resource=${full} ${flag} && kubectl create ${role}binding ${name} --${role}=${name} --user=${user} ${flag}`
  }
  const [, deed, signerName] = bySigner.exec(message) ?? []
  if (deed === undefined || signerName === undefined) return undefined
  const name = `${deed}-${signerName.replaceAll('/', ':')}`
  // kubectl create clusterrole takes no signers: they are no resource that the API server serves.
  const clusterRole = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: [
      {
        apiGroups: ['certificates.k8s.io'],
        resources: ['signers'],
        verbs: [deed],
        resourceNames: [signerName],
      },
    ],
  }
  return commandLine`echo ${JSON.stringify(clusterRole)} | kubectl create -f - && kubectl create clusterrolebinding ${name} --clusterrole=${name} --user=USER`
}
