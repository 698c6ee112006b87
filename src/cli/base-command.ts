import { Command } from '@oclif/core/command'
import * as Flags from '@oclif/core/flags'
import type { FlagInput, Input, ParserOutput } from '@oclif/core/interfaces'
import type { Cluster } from '../cluster/cluster.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { type GivenFlags, repeatInAdvice } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import type { JsonPathTemplate } from '../output/jsonpath.ts'
import { printable } from '../output/terminal.ts'
import type { View } from '../output/view.ts'
import { closestName } from './closest-name.ts'
import { type Context, processContext } from './context.ts'
import type { ClusterFlags, ListFormat } from './flags.ts'
import { type DryRunBy, type FlagShapes, splitOperands, withoutBooleanValues } from './operands.ts'
import { withoutTemplate } from './output-template.ts'
import { ignoreFailedWrites, writeOut } from './standard-output.ts'
import { givenFlags, withRepeatedAdvice, withWholeNext } from './whole-next.ts'

/** The parsed flags of a command. */
export type FlagsOf<Flags extends FlagInput> = Flags extends FlagInput<infer Values> ? Values : never

type Named = Record<string, unknown>

/** Returns the names in a report, for -o name. */
type NamesOf<Report> = (report: Report) => readonly string[]

interface ShowOptions<Report> {
  readonly notices?: readonly string[]
  readonly namesOf?: NamesOf<Report>
  /** The exit code; 0 by default. */
  readonly exit?: ExitCode
}

/** What the exit codes of a command mean, for its help and its page in docs/. */
type ExitMeanings = Partial<Record<keyof typeof exitCodes, string>>

/** The base class of every kcert command: oclif's class, with common output, errors and exit codes. */
export abstract class KcertCommand extends Command {
  static override baseFlags = {
    'no-color': Flags.boolean({
      description: 'disable colored output (as NO_COLOR=1 does)',
      helpGroup: 'GLOBAL',
    }),
  }

  /** The exit codes that this command uses, for its help and its page in docs/. */
  static exitCodes: Partial<Record<ExitCode, string>> = {}

  /** Returns the exit codes of a command by the names that they have in the program. */
  static exitsOf(meanings: ExitMeanings): Partial<Record<ExitCode, string>> {
    return Object.fromEntries(
      Object.entries(meanings).map(([name, text]) => [exitCodes[name as keyof ExitMeanings], text]),
    )
  }

  /**
   * Returns the examples of a command's help: each with its purpose and its command line, in which oclif inserts the program's
   * name.
   */
  static examplesOf(lines: Readonly<Record<string, string>>): { description: string; command: string }[] {
    return Object.entries(lines).map(([description, line]) => {
      return { description, command: line.replaceAll(/(?<![\w./-])kcert(?= [a-z])/g, '<%= config.bin %>') }
    })
  }

  /** The meaning of --dry-run, so that --dry-run=client and --dry-run=server are never confused. */
  static dryRunBy: DryRunBy = 'client'

  private processContext: Context | undefined
  private given: GivenFlags = {}
  /** The template of -o jsonpath. */
  protected template: JsonPathTemplate | undefined
  protected hasHeadings = true

  /** The context of this process, with `--no-color` applied. */
  protected get context(): Context {
    this.processContext ??= withColorChoice(processContext(), this.argv)
    return this.processContext
  }

  /** Runs the command and returns the exit code. */
  protected abstract perform(): Promise<ExitCode>

  override async run(): Promise<void> {
    ignoreFailedWrites()
    const { dryRunBy } = this.constructor as typeof KcertCommand
    this.argv = withoutBooleanValues(this.argv, this.flagShapes(), dryRunBy)
    this.given = givenFlags({ argv: this.argv, shapes: this.flagShapes() })
    repeatInAdvice(this.given)
    process.exitCode = await this.perform()
  }

  private flagShapes(): FlagShapes {
    const { baseFlags, flags } = this.ctor
    return { ...baseFlags, ...flags } as FlagShapes
  }

  /**
   * Returns the flags, arguments and operands of the command line. A command that takes any number of operands gets them only in
   * `operands`: oclif parses only the flags, and rejects any other argument that it finds.
   */
  protected override async parse<F extends Named, B extends Named, A extends Named>(
    command: Input<F, B, A>,
    argv = this.argv,
  ): Promise<ParserOutput<F, B, A> & { readonly operands: readonly string[] }> {
    const { args = {} } = command
    const { argv: line, template } = withoutTemplate(argv, this.flagShapes())
    if (template !== undefined) {
      const { parseJsonPath } = await import('../output/jsonpath.ts')
      this.template = parseJsonPath(template)
    }
    const takesMany = Object.values<{ readonly multiple?: boolean }>(args).some(({ multiple }) => multiple)
    if (!takesMany) {
      const parsed = await super.parse(command, line)
      this.hasHeadings = parsed.flags['no-headers'] !== true
      return { ...parsed, operands: parsed.argv.map(String) }
    }
    const { flags, operands } = splitOperands(line, this.flagShapes())
    const parsed = await super.parse(command, flags).finally(() => {
      // oclif stores its input in argv, without the operands that an error repeats.
      this.argv = argv
    })
    this.hasHeadings = parsed.flags['no-headers'] !== true
    const [stray] = parsed.argv
    if (stray !== undefined)
      throw new KcertError('KCERT_USAGE', `unexpected argument "${String(stray)}"`, {
        fix: `put "--" before arguments that begin with "-"`,
      })
    return { ...parsed, operands }
  }

  /** Returns the result of `act` on the cluster that the flags select, then closes its connections. */
  protected async onCluster<Result>(
    flags: ClusterFlags,
    act: (cluster: Cluster) => Promise<Result>,
  ): Promise<Result> {
    const { withCluster } = await import('./cluster.ts')
    return withCluster(this.context, flags, act)
  }

  /** Writes the answer to standard output and returns the exit code once it is handed over, so that an exit cannot cut it off. */
  protected async answer(text: string): Promise<ExitCode> {
    await writeOut(text)
    return exitCodes.done
  }

  /** Writes a report in the format and returns the exit code. Notices go to standard error, and only with a text format. */
  protected async show<Report extends object>(
    format: ListFormat | 'name',
    report: Report,
    render: (report: Report, view: View) => string,
    { notices = [], namesOf, exit = exitCodes.done }: ShowOptions<Report> = {},
  ): Promise<ExitCode> {
    if (format === 'text' || format === 'wide') this.note(notices)
    await this.answer(await this.textOf(format, report, render, namesOf))
    return exit
  }

  /** Returns a report in the selected format. `namesOf` returns the names for -o name, one per line. */
  protected async textOf<Report extends object>(
    format: ListFormat | 'name',
    report: Report,
    render: (report: Report, view: View) => string,
    namesOf: NamesOf<Report> = () => [],
  ): Promise<string> {
    const { renderReport, stdoutView } = await import('./view.ts')
    if (format === 'name') {
      return namesOf(report)
        .map((name) => `${printable(name)}\n`)
        .join('')
    }
    const whole = this.advising(report)
    if (format === 'jsonpath') {
      const { renderJsonPath } = await import('../output/jsonpath.ts')
      return renderJsonPath(this.template ?? [], whole)
    }
    const standard = await stdoutView(this.context)
    const view: View = {
      ...standard,
      hasHeadings: this.hasHeadings,
      ...(format === 'wide' && { isWide: true, width: Number.POSITIVE_INFINITY }),
    }
    return renderReport(format === 'wide' ? 'text' : format, whole, () => render(whole, view))
  }

  /** Returns a report whose advice names the cluster and the nodes of this command line. */
  protected advising<Report extends object>(report: Report): Report {
    return withRepeatedAdvice(report, this.given)
  }

  /** Writes progress or a warning to standard error, separate from the result. */
  protected notice(text: string): void {
    this.context.stderr.write(text)
  }

  /** Writes notices to standard error, one line each. */
  protected note(notices: readonly string[]): void {
    this.notice(notices.map((notice) => `note: ${printable(notice)}\n`).join(''))
  }

  /** Prints an error and returns the exit code. A command with its own error format overrides this. */
  protected async fail(error: KcertError): Promise<ExitCode> {
    this.notice(formatError(error, this.context.stderrColor))
    return error.exitCode
  }

  protected override async catch(error: Error & { oclif?: { exit?: number } }): Promise<void> {
    const { flags, baseFlags } = this.ctor
    const plain = asKcertError(error, this.id, Object.keys({ ...flags, ...baseFlags }))
    const known = withWholeNext(plain, {
      id: this.id ?? '',
      argv: this.argv,
      shapes: this.flagShapes(),
      takesOperands: Object.keys(this.ctor.args ?? {}).length > 0,
    })
    try {
      process.exitCode = await this.fail(known)
    } catch {
      // The error belongs on standard output, which cannot be written.
      this.notice(formatError(known, this.context.stderrColor))
      process.exitCode = known.exitCode
    }
  }
}

/** Returns a KcertError: kcert's own errors unchanged, oclif's parse errors as wrong usage, and all others as a defect. */
function asKcertError(
  error: Error & { oclif?: { exit?: number } },
  id: string | undefined,
  flags: readonly string[],
): KcertError {
  if (error instanceof KcertError) return error
  if (error.oclif !== undefined) {
    const command = ['kcert', ...(id ? id.split(':') : []), '--help'].join(' ')
    const [missing] = missingArguments(error)
    if (missing !== undefined) {
      const { name, description } = missing
      return new KcertError('KCERT_USAGE', `${name.toUpperCase()} is missing`, {
        ...(description ? { why: `it is ${/^the /.test(description) ? '' : 'a '}${description}` } : {}),
        next: command,
        cause: error,
      })
    }
    const [unknown] = unknownFlags(error)
    if (unknown !== undefined) {
      const near = unknown.startsWith('--') ? closestName(unknown.slice(2), flags) : undefined
      return new KcertError('KCERT_USAGE', `unknown flag: ${unknown}`, {
        ...(near === undefined ? {} : { why: `did you mean "--${near}"?` }),
        next: command,
        cause: error,
      })
    }
    const lines = error.message
      .replaceAll(exclusive, '$1 and $2 are mutually exclusive')
      .replaceAll(required, '$1 requires $2')
      .split('\n')
      .map((line) => line.trim())
    const [what = 'wrong usage', ...more] = lines.filter(
      (line) => line !== '' && !/^See more help with|^The following errors? occurred:$/.test(line),
    )
    const why = more.join('; ')
    return new KcertError('KCERT_USAGE', what, { ...(why ? { why } : {}), next: command, cause: error })
  }
  return new KcertError('KCERT_DEFECT', `unexpected ${error.name}: ${error.message}`, {
    why: firstFrame(error),
    fix: 'this is a bug in kcert; please report it, with the command line and this text, without secrets',
    cause: error,
  })
}

// oclif's message, with a value that may be a secret: "--all=true cannot also be provided when using --phase".
const exclusive = /(--[\w-]+)=.*? cannot also be provided when using (--[\w-]+)/gs
const required = /All of the following must be provided when using (--[\w-]+): (.+)/g

interface NamedArgument {
  readonly name: string
  readonly description?: string
}

/** Returns the flags that oclif's NonExistentFlagsError names. */
function unknownFlags(error: Error & { flags?: unknown }): readonly string[] {
  return Array.isArray(error.flags) ? error.flags : []
}

/**
 * Returns the missing arguments of oclif's RequiredArgsError. Its message also explains the order of flags, which is free here.
 */
function missingArguments(error: Error & { args?: readonly NamedArgument[] }): readonly NamedArgument[] {
  return error.name === 'RequiredArgsError' || error.constructor.name === 'RequiredArgsError'
    ? (error.args ?? [])
    : []
}

function firstFrame(error: Error): string {
  const frame = error.stack?.split('\n').find((line) => line.trimStart().startsWith('at '))
  return frame ? frame.trim().replace(/\(.*\/(dist|src)\//, '($1/') : 'no trace'
}

function withColorChoice(context: Context, argv: readonly string[]): Context {
  const end = argv.indexOf('--')
  const flags = end === -1 ? argv : argv.slice(0, end)
  if (!flags.includes('--no-color')) return context
  return Object.defineProperties(Object.create(context) as Context, {
    stdoutColor: { value: 0 },
    stderrColor: { value: 0 },
  })
}
