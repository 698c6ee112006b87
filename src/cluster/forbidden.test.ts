import { expect, test } from 'vitest'
import type { Advice } from '../errors/kcert-error.ts'
import { adviceForRight } from './forbidden.ts'

test.each<[message: string, advice: Advice | undefined]>([
  [
    'certificatesigningrequests.certificates.k8s.io "a" is forbidden: User "ann" cannot update resource "certificatesigningrequests/approval" in API group "certificates.k8s.io" at the cluster scope',
    {
      next: 'kubectl create clusterrole update-certificatesigningrequests-approval --verb=update --resource=certificatesigningrequests.certificates.k8s.io/approval && kubectl create clusterrolebinding update-certificatesigningrequests-approval --clusterrole=update-certificatesigningrequests-approval --user=ann',
    },
  ],
  [
    'secrets is forbidden: User "it\'s $(me)" cannot list resource "secrets" in API group "" in the namespace "shop"',
    {
      next: "kubectl create role list-secrets --verb=list --resource=secrets -n shop && kubectl create rolebinding list-secrets --role=list-secrets --user='it'\\''s $(me)' -n shop",
    },
  ],
  [
    'certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to sign requests with signerName "example.com/serving"',
    {
      fix: 'as an administrator, with the user that "kubectl auth whoami" prints as USER, run: echo \'{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"sign-example.com:serving"},"rules":[{"apiGroups":["certificates.k8s.io"],"resources":["signers"],"verbs":["sign"],"resourceNames":["example.com/serving"]}]}\' | kubectl create -f - && kubectl create clusterrolebinding sign-example.com:serving --clusterrole=sign-example.com:serving --user=USER',
    },
  ],
  ['admission webhook "x" denied the request: no', undefined],
])('%s', (message, advice) => {
  expect(adviceForRight(message)).toEqual(advice)
})
