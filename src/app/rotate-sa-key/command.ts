import { RotationCommand } from '../rotate-ca/command.ts'

/** The base class of rotate-sa-key commands: opens a session with the phases of the service account key. */
export abstract class KeyRotationCommand extends RotationCommand {
  protected override async playbookOf() {
    return (await import('../../rotation/service-account-key/playbook.ts')).keyPlaybook
  }
}
