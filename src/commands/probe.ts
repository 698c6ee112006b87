import { type ProbeFlags, type ProbeSection, probeFlags, probeSections } from '../app/probe/flags.ts'
import { probe } from '../app/probe/probe.ts'
import { checkFiles, flagFiles } from '../cli/command-files.ts'
import * as Flag from '../cli/flags.ts'
import { parseDuration } from '../cli/instant.ts'
import { renderReport, stdoutView } from '../cli/view.ts'
import { type Frame, WatchingCommand, watchFlags } from '../cli/watching-command.ts'
import type { ExitCode } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderProbe } from '../output/probe.ts'

export default class Probe extends WatchingCommand {
  static override summary = 'Probe TLS endpoints: served certificate, trust and client authentication.'

  static override description = `For each server, kcert shows:

  connection    TLS version, cipher, and how long the handshake took
  certificate   the chain that the server sends, and whether it is valid for the names that clients use
  trust         whether the chain verifies with the cluster CA, and for kubelets with the --kubelet-certificate-authority of the
                API servers
  client        the CAs whose client certificates the server accepts, and whether it accepts yours
  renewal       whether the server serves the certificate that was issued to it last

kcert probes hundreds of servers at the same time, and completes the handshake even if a certificate is invalid. With TLS 1.3, only
the response to a request shows whether a client certificate is accepted.

Servers are named as HOST:PORT, found in a cluster (--api-servers, --nodes, --etcd, --webhooks, --all), or found on its nodes:

  in the cluster  Nodes, the EndpointSlice of the API servers, mirror pods of static pods, and the Services of webhooks,
                  aggregated APIs and conversion webhooks. kcert connects from this machine. It compares a kubelet's certificate with
                  the kubelet's last CertificateSigningRequest, which the cluster keeps for an hour.
  with -i FILE    kcert.yaml, as kcert rotate-ca discover writes it. Connections start on the node, so that kcert reaches loopback
                  ports and pods. The served certificate is compared with the one on the node's disk. For kubelets and etcd, kcert
                  uses the client certificates of the API server, and keeps their keys in memory only. An API server is needed
                  only for --webhooks. By default everything except webhooks is probed.

kcert presents the client certificate of --client-certificate, else that of the kubeconfig, else none, and only to servers that
request one. Then it sends one request that changes nothing: a SelfSubjectReview, /healthz, /version or /metrics. A server that requests
a client certificate and then closes the connection without a TLS alert or an HTTP status may have refused it: CLIENT_UNKNOWN, exit 3.
A server that requests none counts as ok, because nothing was presented.

No component verifies the controller manager, the scheduler, or kubelets without --kubelet-certificate-authority. For these, failed
trust checks are shown but do not affect the exit code. Pods behind Services are often unreachable from outside the cluster. Their
endpoint is then NOT REACHED. With -i, kcert connects to them from a control-plane node.`

  static override exitCodes = WatchingCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all servers were reached, without problems',
    usage: 'wrong usage, or a file cannot be read',
    no: 'a server certificate has expired, is not trusted, lacks a name or was replaced on disk; or the client certificate is refused, or it is unknown whether it is accepted',
    unreachable: 'a server or the API server could not be reached',
    refused: 'other users can change the inventory',
  })

  static override examples = WatchingCommand.examplesOf({
    'Probe one server, with the CA and the name that clients use':
      'kcert probe 192.0.2.10:6443 --ca /etc/kubernetes/pki/ca.crt --name kubernetes.default.svc',
    'Probe every API server and kubelet of the cluster': 'kcert probe --api-servers --nodes',
    'Find components that still serve their old certificate after a renewal': `kcert probe -i kcert.yaml -o json | jq -r '.endpoints[] | select(.issued.state == "renewed-not-served") | .name'`,
    'Check whether etcd accepts a client certificate with TLS 1.2':
      'kcert probe 192.0.2.10:2379 --ca etcd-ca.crt --client-certificate client.crt --client-key client.key --tls 1.2',
    'Watch the kubelets while their serving certificates are approved':
      'kcert probe --nodes --watch --every 5s',
  })

  static override args = { endpoint: Flag.operands('HOST:PORT, [IPv6]:PORT or https://HOST') }

  static override flags = {
    ...probeFlags,
    ...watchFlags('probe'),
    ...Flag.clusterFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags: parsed, operands: endpoints } = await this.parse(Probe)
    const flags = { ...parsed, inventory: Flag.namedInventory(parsed) }
    const sections = sectionsOf(flags)
    checkWanted(endpoints, sections, flags)
    checkFiles({
      inputs: flagFiles(
        flags,
        'inventory',
        'ca',
        'kubelet-certificate-authority',
        'etcd-ca',
        'client-certificate',
        'client-key',
        'password-file',
      ),
      outputs: [],
      replace: false,
    })
    const isAll = flags.all || isUnselected(flags)
    const act = async (frame: Frame): Promise<ExitCode> => {
      const { report: found, exit } = await probe({ ...flags, endpoints, sections, isAll }, this.context)
      const report = this.advising(found)
      const view = await stdoutView(this.context)
      await this.answer(frame(renderReport(flags.output, report, () => renderProbe(report, view))))
      return exit
    }
    parseDuration(flags.timeout, '--timeout')
    return this.watch(flags, act)
  }
}

type SectionFlags = Pick<ProbeFlags, ProbeSection | 'all' | 'inventory'>

function sectionsOf(flags: SectionFlags): ReadonlySet<ProbeSection> {
  if (isUnselected(flags)) return new Set(['api-servers', 'nodes', 'etcd'])
  return new Set(probeSections.filter((section) => flags.all || flags[section]))
}

/** With an inventory and no selection: every section that needs no API server. */
function isUnselected({ inventory, all, ...flags }: SectionFlags): boolean {
  return inventory !== undefined && !all && !probeSections.some((section) => flags[section])
}

function checkWanted(
  endpoints: readonly string[],
  sections: ReadonlySet<ProbeSection>,
  flags: { readonly name?: readonly string[] | undefined },
): void {
  if (endpoints.length === 0 && sections.size === 0) {
    throw new KcertError('KCERT_USAGE', 'no server given', {
      why: 'give HOST:PORT, --api-servers, --nodes, --etcd, --webhooks, --all, or an inventory',
      next: 'kcert probe --all',
    })
  }
  if (endpoints.length === 0 && flags.name !== undefined) {
    throw new KcertError('KCERT_USAGE', '--name requires HOST:PORT', {
      why: 'for servers that are found in a cluster, kcert knows the names',
    })
  }
}
