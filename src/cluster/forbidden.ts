import { commandLine, embed } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'

// The API server's message when RBAC denies a request, and when a right on a signer is missing (k8s.io/apiserver
// .../handlers/responsewriters, k8s.io/kubernetes plugin/pkg/admission/certificates).
const byRbac =
  /\bUser "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/
const bySigner = /\buser not permitted to (approve|sign) requests with signerName "([^"]+)"/

/**
 * Returns the command with which an administrator grants the right that the API server's message names; undefined when it names
 * none. The message about a signer does not name the user, so its command is to be completed.
 */
export function adviceForRight(message: string): Advice | undefined {
  const [, user, verb, resource, group, namespace] = byRbac.exec(message) ?? []
  if (user !== undefined && verb !== undefined && resource !== undefined) {
    const [plural = '', subresource] = resource.split('/')
    const full = `${group ? `${plural}.${group}` : plural}${subresource ? `/${subresource}` : ''}`
    const role = namespace === undefined ? 'clusterrole' : 'role'
    const flag = namespace === undefined ? undefined : embed(commandLine`-n ${namespace}`)
    const name = `${verb}-${resource.replace('/', '-')}`
    return {
      next: commandLine`kubectl create ${role} ${name} --verb=${verb} --resource=${full} ${flag} && kubectl create ${role}binding ${name} --${role}=${name} --user=${user} ${flag}`,
    }
  }
  const [, deed, signerName] = bySigner.exec(message) ?? []
  if (deed === undefined || signerName === undefined) return undefined
  const name = `${deed}-${signerName.replaceAll('/', ':')}`
  // kubectl create clusterrole does not accept signers, because the API server does not serve them as a resource.
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
  const command = commandLine`echo ${JSON.stringify(clusterRole)} | kubectl create -f - && kubectl create clusterrolebinding ${name} --clusterrole=${name} --user=USER`
  return {
    fix: `as an administrator, with the user that "kubectl auth whoami" prints as USER, run: ${command}`,
  }
}
