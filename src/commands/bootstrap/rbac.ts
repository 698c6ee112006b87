import { bootstrapRbac } from '../../bootstrap/rbac.ts'
import { checkGroups, kubeadmJoiners, tokenUsages } from '../../bootstrap/token-secret.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { formatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderJson } from '../../output/json.ts'
import { renderYaml } from '../../output/yaml.ts'

export default class BootstrapRbac extends KcertCommand {
  static override summary = 'Print the RBAC objects that TLS bootstrap needs, for kubectl apply.'

  static override description =
    `Bearers of tokens with the group may create requests (system:node-bootstrapper) and have their first one approved (nodeclient); nodes may
have renewals approved (selfnodeclient); anybody may read cluster-info. The names are kubeadm's, so that applying them to a
cluster of kubeadm's mends what is missing. For another group they are names of their own. No cluster is asked.`

  static override exitCodes = {
    [exitCodes.done]: 'the objects are printed',
    [exitCodes.usage]: 'wrong usage, or a group that tokens cannot have',
  }

  static override examples = KcertCommand.examplesOf({
    'Mend a cluster': 'kcert bootstrap rbac -o yaml | kubectl apply -f -',
    'What would change': 'kcert bootstrap rbac | kubectl diff -f -',
    'For tokens with a group of your own':
      'kcert bootstrap rbac --group system:bootstrappers:edge | kubectl apply -f -',
  })

  static override flags = {
    group: valueFlag('GROUP', 'the group of the tokens', { default: kubeadmJoiners }),
    output: formatFlag(['yaml', 'json'], 'yaml: documents; json: a List'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(BootstrapRbac)
    const { group, output } = flags
    // The group that every token has is not one that a token is given.
    if (group !== 'system:bootstrappers') checkGroups([group], tokenUsages)
    const objects = bootstrapRbac(group)
    await this.answer(
      output === 'json'
        ? renderJson({ apiVersion: 'v1', kind: 'List', items: objects })
        : objects.map(renderYaml).join('---\n'),
    )
    return exitCodes.done
  }
}
