import * as v from 'valibot'
import {
  described,
  errorSchema,
  header,
  objects,
  optionalField,
  optionalText,
  text,
  time,
} from '../../errors/json-fields.ts'
import { inspectionReportSchema } from '../../inspection/report.ts'
import { probeReportSchema } from '../../probe/report.ts'
import { phaseEvents } from '../../rotation/journal.ts'

// The JSON contract of `kcert fleet`: one line for each cluster, then a summary. docs/schemas/ is generated from it.

const status = described(
  v.picklist(['ok', 'problems', 'incomplete', 'unreachable', 'refused', 'forbidden', 'defect']),
  'incomplete: reading stopped at --deadline or at a limit, and `report` has the rest',
)

const place = {
  cluster: text('the context, or the name of the cluster in the management cluster; not unique'),
  source: text(
    'the kubeconfig, or the object: "secret fleet/prod-kubeconfig"; unique together with `cluster`',
  ),
}

const fleetDocument = <Report extends v.GenericSchema>(kind: string, report: Report) =>
  v.object({
    ...header(kind),
    ...place,
    server: optionalText('URL of the API server'),
    status,
    error: optionalField(errorSchema, 'why `report` is incomplete or absent'),
    report: v.optional(report),
  })

export const fleetInspectionSchema = fleetDocument('FleetInspection', inspectionReportSchema)

export const fleetProbeSchema = fleetDocument('FleetProbe', probeReportSchema)

export const fleetRotationSchema = fleetDocument(
  'FleetRotation',
  v.object({
    rotations: objects({
      rotation: described(v.picklist(['ca', 'etcd-ca', 'service-account-key']), 'what is replaced'),
      state: described(
        v.picklist(['not-started', 'in-progress', 'finished', 'unknown']),
        'unknown: the copy of the journal in the cluster is incomplete',
      ),
      phase: optionalField(
        v.object({ number: v.number(), event: v.picklist(phaseEvents) }),
        'the last phase and its last event',
      ),
      writtenAt: optionalField(time, 'when the last entry was written'),
    }),
  }),
)

export const fleetSummarySchema = v.object({
  ...header('FleetSummary'),
  generatedAt: time,
  clusters: v.number(),
  byStatus: described(v.record(v.string(), v.number()), 'number of clusters by status'),
  notRead: described(
    objects({ ...place, status, why: v.string() }),
    'the clusters without a complete report',
  ),
  skipped: described(
    objects({ source: v.string(), reason: v.string() }),
    'the files that are not kubeconfigs',
  ),
})
