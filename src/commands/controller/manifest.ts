import { checkNamespace, enabledBy } from '../../app/controller/approved-by.ts'
import { controllerFlags, watchIntervalFlag, watchIntervalMs } from '../../app/controller/flags.ts'
import {
  checkImage,
  checkSecretName,
  manifestDefaults,
  manifestOf,
  portsOf,
} from '../../app/controller/manifest.ts'
import { signersOf } from '../../app/controller/policy-rights.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { renderJson } from '../../output/json.ts'
import { renderYamlDocuments } from '../../output/yaml.ts'

export default class ControllerManifest extends KcertCommand {
  static override summary = 'Print the Kubernetes objects that run kcert controller in a cluster.'

  static override description =
    `Prints a Deployment with two replicas on different nodes, its service account, a PodDisruptionBudget and a NetworkPolicy. The pods meet
the Pod Security Standard "restricted". RBAC grants what the policy needs and nothing else: to approve for its signers, and to read what
its rules compare a CSR with. The namespace must exist.

A policy file becomes a ConfigMap. If you change its signers or rules later, print the objects again, because RBAC changes too.

The NetworkPolicy lets the controller connect to the API server and to port 10250 of kubelets. If your API servers listen on a port
other than 443 or 6443, name it with --api-server-port: the port of the endpoints, not of the Service. With --watch, the controller may
also connect to port 53 (DNS) and to the ports of --webhook-port. A webhook on another port counts as unreachable.

Only Prometheus may connect to the controller: pods with the labels --prometheus-pods in --prometheus-namespace. The metrics of --watch
contain the names of namespaces, Secrets and other objects. RBAC of --watch grants only get and list, and Secrets only with --watch-secrets.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the objects were printed',
    usage: 'wrong usage, or a policy that cannot be read',
    refused: 'other users can change the policy file',
  })

  static override examples = KcertCommand.examplesOf({
    "Approve kubelets' serving certificates":
      'kcert controller manifest --approve kubelet-serving --image registry.example.com/kcert:0.1.0 | kubectl apply -f -',
    'Apply your own policy, with a ServiceMonitor of the Prometheus operator':
      'kcert controller manifest --approve policy.yaml --image registry.example.com/kcert:0.1.0 --service-monitor',
    'Export metrics, with alerts for the Prometheus operator':
      'kcert controller manifest --watch --image registry.example.com/kcert:0.1.0 --service-monitor --prometheus-rule',
    'Compare the objects with those of the cluster':
      'kcert controller manifest --approve builtin --image registry.example.com/kcert:0.1.0 -n kcert | kubectl diff -f -',
  })

  static override flags = {
    ...controllerFlags,
    image: Flag.value('IMAGE', 'image that contains kcert', { required: true }),
    'image-pull-secret': Flag.repeated(
      'NAME',
      'Secret in the namespace with the credentials of a private registry; may be repeated',
    ),
    replicas: Flag.number('N', 'number of pods, each on its own node; one of them acts', {
      default: manifestDefaults.replicas,
      min: 1,
    }),
    'api-server-port': Flag.repeated(
      'PORT',
      `port of API servers; may be repeated (default ${manifestDefaults.apiServerPorts.join(' and ')})`,
    ),
    'watch-interval': watchIntervalFlag,
    'webhook-port': Flag.repeated(
      'PORT',
      `port of webhooks and aggregated APIs, besides 10250; may be repeated (default ${manifestDefaults.webhookPorts.join(', ')})`,
      { dependsOn: ['watch'] },
    ),
    'prometheus-namespace': Flag.value('NAMESPACE', 'namespace of the pods that may read the metrics', {
      default: manifestDefaults.prometheusNamespace,
    }),
    'prometheus-pods': Flag.value('LABELS', 'labels of these pods: KEY=VALUE, separated by commas', {
      default: manifestDefaults.prometheusPods,
    }),
    'service-monitor': Flag.boolean('add a ServiceMonitor of the Prometheus operator, and its Service'),
    'prometheus-rule': Flag.boolean('add a PrometheusRule of the Prometheus operator, with the alerts'),
    output: Flag.format(['yaml', 'json'], 'output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(ControllerManifest)
    const { namespace, image, replicas, 'watch-interval': watchInterval } = flags
    const { 'prometheus-namespace': prometheusNamespace, 'prometheus-pods': prometheusPods } = flags
    const { apiServerPorts, webhookPorts } = manifestDefaults
    checkNamespace(namespace)
    checkNamespace(prometheusNamespace, '--prometheus-namespace')
    checkImage(image)
    const imagePullSecrets = flags['image-pull-secret'] ?? []
    imagePullSecrets.forEach(checkSecretName)
    watchIntervalMs(watchInterval)
    const enabled = await enabledBy(flags, this.context)
    const items = manifestOf({
      ...{
        ...enabled,
        image,
        imagePullSecrets,
        namespace,
        replicas,
        watchInterval,
        prometheusNamespace,
        prometheusPods,
      },
      apiServerPorts: portsOf('--api-server-port', flags['api-server-port'] ?? apiServerPorts.map(String)),
      webhookPorts: portsOf('--webhook-port', flags['webhook-port'] ?? webhookPorts.map(String)),
      serviceMonitor: flags['service-monitor'],
      prometheusRule: flags['prometheus-rule'],
    })
    const wide = signersOf(enabled.approve?.policies ?? []).filter((signer) => signer.endsWith('*'))
    this.note(
      wide.map((signer) => {
        const which = signer === '*' ? 'every signer' : `every signer of ${signer.slice(0, -'/*'.length)}`
        return `RBAC lets the controller approve for ${which}, because signerNames of the policy has a pattern`
      }),
    )
    return this.answer(
      flags.output === 'json'
        ? renderJson({ apiVersion: 'v1', kind: 'List', items })
        : renderYamlDocuments(items),
    )
  }
}
