import { bootstrapRbac } from '../../bootstrap/rbac.ts'
import { checkGroups, kubeadmJoiners, tokenUsages } from '../../bootstrap/token-secret.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { renderJson } from '../../output/json.ts'
import { renderYaml } from '../../output/yaml.ts'

export default class BootstrapRbac extends KcertCommand {
  static override summary = 'Print the RBAC objects that TLS bootstrap needs, for kubectl apply.'

  static override description =
    `The objects allow what a joining node needs. The group of the tokens may create CertificateSigningRequests
(system:node-bootstrapper). A node's first request and its renewals are approved automatically (nodeclient, selfnodeclient). Anonymous
clients may read cluster-info. The objects have kubeadm's names, so applying them to a kubeadm cluster
restores what is missing. For another group, they have names of their own. This command does not use the API server.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the objects were printed',
    usage: 'wrong usage, or a group that tokens cannot have',
  })

  static override examples = KcertCommand.examplesOf({
    'Restore the objects of a cluster': 'kcert bootstrap rbac -o yaml | kubectl apply -f -',
    'Preview the changes': 'kcert bootstrap rbac | kubectl diff -f -',
    'Print them for tokens with another group':
      'kcert bootstrap rbac --group system:bootstrappers:edge | kubectl apply -f -',
  })

  static override flags = {
    group: Flag.value('GROUP', 'group of the tokens', { default: kubeadmJoiners }),
    output: Flag.format(['yaml', 'json'], 'yaml: documents; json: a List'),
  }

  protected override async perform() {
    const { flags } = await this.parse(BootstrapRbac)
    const { group, output } = flags
    // Tokens cannot name the group that every token has.
    if (group !== 'system:bootstrappers') checkGroups([group], tokenUsages)
    const objects = bootstrapRbac(group)
    return this.answer(
      output === 'json'
        ? renderJson({ apiVersion: 'v1', kind: 'List', items: objects })
        : objects.map(renderYaml).join('---\n'),
    )
  }
}
