import { type ProbeFlags, type ProbeSection, probeFlags, probeSections } from '../app/probe/flags.ts'
import { probe } from '../app/probe/probe.ts'
import { checkFiles, flagFiles } from '../cli/command-files.ts'
import { clusterExits, clusterFlags, operands, reportFormatFlag } from '../cli/flags.ts'
import { parseDuration } from '../cli/instant.ts'
import { renderReport, stdoutView } from '../cli/view.ts'
import { type Frame, WatchingCommand, watchFlags } from '../cli/watching-command.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderProbe } from '../output/probe.ts'

export default class Probe extends WatchingCommand {
  static override summary =
    'Shake hands with servers: what they serve now, who trusts it, and whom they let in.'

  static override description =
    `Of each server: version of TLS and cipher, the chain as it was sent, whether it is valid for the names that clients use, whether
it holds by the cluster CA and by the API servers' --kubelet-certificate-authority, the CAs that it asks client certificates of, whether
a client certificate is accepted (with TLS 1.3 only the answer to a request tells), whether it serves the certificate that it was given
last, and the time that it took. No server is refused by the handshake itself. Hundreds are probed at the same time.

What is probed is named as HOST:PORT, found in a cluster (--api-servers, --nodes, --etcd, --webhooks, --all), or found on its nodes:

  by the API     Nodes, the EndpointSlice of the API servers, mirror pods of static pods, and the Services behind webhooks,
                 aggregated APIs and conversions. Dialled from this machine. The certificate that a kubelet was given is that of its
                 last CertificateSigningRequest, while the cluster keeps it (an hour).
  by -i FILE     kcert.yaml, as kcert rotate-ca discover writes it. Every connection begins on the node, so that loopback ports
                 and pods are reached; the certificate on the node's disk is held against what is served; kubelets and etcd are shown
                 the client certificates of the API server, whose keys are read for it and kept in memory. No API server is needed,
                 except for --webhooks. Without a selection: everything but webhooks.

The client certificate shown is --client-certificate, else that of the kubeconfig, else none. It is shown to servers that ask for one
and to no other; then one harmless request is sent: who am I, /healthz, /version or /metrics. A server that requests a client certificate
and then closes the connection without a TLS alert or an HTTP status may have refused it: CLIENT_UNKNOWN, exit 3. A server that
requests none counts as ok, because nothing was presented.

Where nobody verifies a server (kubelets without --kubelet-certificate-authority, the controller manager and the scheduler), what
the CAs say of it is shown and does not count. Pods behind Services are seldom reached from outside a cluster: then the endpoint
is NOT REACHED, and -i dials from a control plane.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'every server was reached, and nothing is wrong',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]:
      'a server has expired, is not trusted, lacks a name, serves an old certificate, refuses the client certificate, or does not tell whether it accepts it',
    [exitCodes.unreachable]: 'a server or the API server was not reached',
    [exitCodes.refused]: 'other users can change the inventory',
  }

  static override examples = WatchingCommand.examplesOf({
    'One server, held against a CA, under the name that clients use':
      'kcert probe 192.0.2.10:6443 --ca /etc/kubernetes/pki/ca.crt --name kubernetes.default.svc',
    'Every API server and kubelet of the cluster': 'kcert probe --api-servers --nodes',
    'After a renewal: is there a component that still serves its old certificate?': `kcert probe -i kcert.yaml -o json | jq -r '.endpoints[] | select(.given.state == "renewed-not-served") | .name'`,
    'Does etcd take this client certificate, with TLS 1.2 as well?':
      'kcert probe 192.0.2.10:2379 --ca etcd-ca.crt --client-certificate client.crt --client-key client.key --tls 1.2',
    'Watch the kubelets while their serving certificates are approved':
      'kcert probe --nodes --watch --every 5s',
  })

  static override args = { endpoint: operands('HOST:PORT, [IPv6]:PORT or https://HOST') }

  static override flags = {
    ...probeFlags,
    ...watchFlags('probe'),
    ...clusterFlags,
    output: reportFormatFlag('how to show it'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands: endpoints } = await this.parse(Probe)
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
    if (!flags.watch) return act((text) => text)
    // An API server that is away for a moment.
    return this.watch(flags.every, act, ({ code }) => code === 'KCERT_UNREACHABLE')
  }
}

type SectionFlags = Pick<ProbeFlags, ProbeSection | 'all' | 'inventory'>

function sectionsOf(flags: SectionFlags): ReadonlySet<ProbeSection> {
  if (isUnselected(flags)) return new Set(['api-servers', 'nodes', 'etcd'])
  return new Set(probeSections.filter((section) => flags.all || flags[section]))
}

/** An inventory alone: what needs no API server. */
function isUnselected({ inventory, all, ...flags }: SectionFlags): boolean {
  return inventory !== undefined && !all && !probeSections.some((section) => flags[section])
}

function checkWanted(
  endpoints: readonly string[],
  sections: ReadonlySet<ProbeSection>,
  flags: { readonly name?: readonly string[] | undefined },
): void {
  if (endpoints.length === 0 && sections.size === 0) {
    throw new KcertError('KCERT_USAGE', 'what is to be probed?', {
      why: 'no HOST:PORT, none of --api-servers, --nodes, --etcd, --webhooks and --all, and no inventory was given',
      next: 'kcert probe --all',
    })
  }
  if (endpoints.length === 0 && flags.name !== undefined) {
    throw new KcertError('KCERT_USAGE', '--name goes with HOST:PORT', {
      why: 'for what is found in a cluster the names are known',
      next: 'leave it out',
    })
  }
}
