import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'

export default class RotateCaPlan extends RotationCommand {
  static override summary = 'Plan a whole rotation: what is affected, what changes and what blocks it.'

  static override description =
    `kcert reads the cluster and its nodes and writes nothing. A trust holder is a process, kubeconfig or object with CA certificates. A
credential holder is one with a client or serving certificate. The plan shows all of them with their configured certificates and the
certificates in use.

For each phase, the plan shows the changed files line by line (without secrets), the restarts and the workloads to roll out. It lists
webhooks, APIServices and CRD conversions that trust the old CA, kubeconfigs, join tokens, and certificates of other applications that
the old CA signed. It shows what blocks the rotation, what to do about it, and an estimate of the time.

kcert plans each phase on the expected result of the previous phase, and checks it on a model for connections that would break. It plans
a phase again before it runs it. To see exactly what one phase would do now, run kcert rotate-ca --phase N --dry-run.

With --sources, kcert also reads the files of a repository that tools such as Argo CD, Flux or Ansible apply. It lists each place that would
restore an old CA, and prints the diff that the repository needs now: both CAs after phase 1, only the new CA once phase 12 has started. It does
not change the files, and does not show lines that may be secret.`

  static override exitCodes = RotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'nothing blocks the rotation',
    usage: 'wrong usage, or no inventory',
    no: 'something blocks the rotation, or files in --sources need a change or could not be checked; the plan says what to do',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory or the journal',
  })

  static override examples = RotationCommand.examplesOf({
    'Plan a rotation': 'kcert rotate-ca plan',
    'Save the plan for a review': 'kcert rotate-ca plan -o json > plan.json',
    'Plan a rotation after a key leaked': 'kcert rotate-ca plan --reason compromise',
    'Find old CAs in a repository': 'kcert rotate-ca plan --sources ./deploy',
    'Save the diff that the repository needs':
      "kcert rotate-ca plan --sources ./deploy -o json | jq -r '.sources.diff' > ca.diff",
  })

  static override flags = {
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    sources: Flag.value(
      'DIR',
      'folder with the files of a repository: print what would restore an old CA there, and the diff that removes it; links are not followed, and .git is skipped',
    ),
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaPlan)
    const { sources: folder } = flags
    const [{ renderPlan }, readSources] = await Promise.all([
      import('../../output/rotation/plan.ts'),
      folder === undefined
        ? undefined
        : import('../../app/rotate-ca/sources.ts').then((sources) => sources.sourcesIn(folder, this.context)),
    ])
    const plan = await this.withSession(flags, 'read', (session) => session.plan(readSources))
    await this.show(flags.output, plan, renderPlan)
    const { blockers, sources: { places, unchecked } = { places: [], unchecked: [] } } = plan
    const isOpen = blockers.length + unchecked.length > 0 || places.some(({ needsChange }) => needsChange)
    return isOpen ? exitCodes.no : exitCodes.done
  }
}
