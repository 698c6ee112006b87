import { toJsonSchema } from '@valibot/to-json-schema'
import type { GenericSchema } from 'valibot'
import { controllerCheckSchema } from '../../src/app/controller/check-report.ts'
import { descriptionsSchema } from '../../src/app/csr/description-report.ts'
import {
  fleetInspectionSchema,
  fleetProbeSchema,
  fleetRotationSchema,
  fleetSummarySchema,
} from '../../src/app/fleet/report.ts'
import { versionSchema } from '../../src/app/version-report.ts'
import { auditPolicyCheckSchema, auditReportSchema } from '../../src/audit/report.ts'
import {
  caPinsSchema,
  clusterInfoSchema,
  clusterInfoUpdateSchema,
  clusterInfoVerificationSchema,
} from '../../src/bootstrap/cluster-info-report.ts'
import { bootstrapKubeconfigSchema, bootstrapProgressSchema } from '../../src/bootstrap/progress-report.ts'
import {
  createdTokenSchema,
  deletedTokensSchema,
  tokenCheckSchema,
  tokenListSchema,
} from '../../src/bootstrap/token-report.ts'
import { signedRequestsSchema } from '../../src/ca/cluster-report.ts'
import { signedControlPlaneSchema } from '../../src/ca/control-plane-report.ts'
import { certificateRenewalSchema } from '../../src/ca/renewal-report.ts'
import {
  bundleReportSchema,
  caReportSchema,
  keyReportSchema,
  signingReportSchema,
} from '../../src/ca/report.ts'
import { decisionReportSchema } from '../../src/csr/approval/decision-report.ts'
import { policySchema } from '../../src/csr/approval/policy-schema.ts'
import { checkReportSchema } from '../../src/csr/check-report.ts'
import { createReportSchema } from '../../src/csr/create-report.ts'
import { explanationSchema } from '../../src/csr/explain/report.ts'
import { fetchedManySchema, fetchReportSchema } from '../../src/csr/fetch-report.ts'
import { podExplanationSchema, podRequestListSchema } from '../../src/csr/pods/report.ts'
import { requestListSchema } from '../../src/csr/request-report.ts'
import { submissionReportSchema } from '../../src/csr/submission-report.ts'
import { errorExplanationSchema } from '../../src/diagnosis/report.ts'
import { inspectionReportSchema } from '../../src/inspection/report.ts'
import { createdKubeconfigSchema, kubeconfigEditSchema } from '../../src/kubeconfig/report.ts'
import { kubeletDiagnosisSchema } from '../../src/kubelet/doctor/report.ts'
import { forecastSchema } from '../../src/kubelet/forecast-report.ts'
import { managedCertificateSchema } from '../../src/kubelet/manage-report.ts'
import { templateSchema } from '../../src/kubelet/template-schema.ts'
import { probeReportSchema } from '../../src/probe/report.ts'
import { discoverySchema } from '../../src/rotation/discovery-report.ts'
import { inventorySchema } from '../../src/rotation/inventory-schema.ts'
import {
  rotationOldKeysSchema,
  rotationPlanSchema,
  rotationRecoverySchema,
  rotationRunbookSchema,
  rotationRunSchema,
  rotationStatusSchema,
  rotationVerificationSchema,
} from '../../src/rotation/report.ts'
import { serviceAccountKeyPlanSchema } from '../../src/rotation/service-account-key/report.ts'
import { verificationReportSchema } from '../../src/verification/report.ts'

/** Every kind of JSON document that kcert prints. */
const kinds: Record<string, GenericSchema> = {
  ApprovalPolicy: policySchema,
  AuditPolicyCheck: auditPolicyCheckSchema,
  AuditReport: auditReportSchema,
  ControllerCheck: controllerCheckSchema,
  Inventory: inventorySchema,
  Discovery: discoverySchema,
  InspectionReport: inspectionReportSchema,
  VerificationReport: verificationReportSchema,
  FleetInspection: fleetInspectionSchema,
  FleetProbe: fleetProbeSchema,
  FleetRotation: fleetRotationSchema,
  FleetSummary: fleetSummarySchema,
  ProbeReport: probeReportSchema,
  ErrorExplanation: errorExplanationSchema,
  CreatedRequests: createReportSchema,
  RequestCheck: checkReportSchema,
  RequestList: requestListSchema,
  RequestDescriptions: descriptionsSchema,
  RequestExplanation: explanationSchema,
  PodCertificateRequestList: podRequestListSchema,
  PodCertificateRequestExplanation: podExplanationSchema,
  SubmittedRequests: submissionReportSchema,
  FetchedCertificate: fetchReportSchema,
  FetchedCertificates: fetchedManySchema,
  RequestDecisions: decisionReportSchema,
  KubeletForecast: forecastSchema,
  ManagedCertificate: managedCertificateSchema,
  CertificateTemplate: templateSchema,
  GeneratedKey: keyReportSchema,
  CertificateAuthority: caReportSchema,
  SignedCertificates: signingReportSchema,
  SignedRequests: signedRequestsSchema,
  SignedControlPlane: signedControlPlaneSchema,
  CaBundle: bundleReportSchema,
  ClusterInfo: clusterInfoSchema,
  ClusterInfoVerification: clusterInfoVerificationSchema,
  ClusterInfoUpdate: clusterInfoUpdateSchema,
  CaPins: caPinsSchema,
  TokenList: tokenListSchema,
  CreatedToken: createdTokenSchema,
  DeletedTokens: deletedTokensSchema,
  TokenCheck: tokenCheckSchema,
  CreatedKubeconfig: createdKubeconfigSchema,
  KubeconfigEdit: kubeconfigEditSchema,
  BootstrapProgress: bootstrapProgressSchema,
  BootstrapKubeconfig: bootstrapKubeconfigSchema,
  CertificateRenewal: certificateRenewalSchema,
  KubeletDiagnosis: kubeletDiagnosisSchema,
  RotationStatus: rotationStatusSchema,
  RotationPlan: rotationPlanSchema,
  RotationRun: rotationRunSchema,
  RotationRunbook: rotationRunbookSchema,
  RotationOldKeys: rotationOldKeysSchema,
  RotationRecovery: rotationRecoverySchema,
  RotationVerification: rotationVerificationSchema,
  ServiceAccountKeyPlan: serviceAccountKeyPlanSchema,
  Version: versionSchema,
}

// A schema cannot express checks beyond the shape. Their error messages describe them.
/** Returns docs/schemas/<kind>.json for every kind of JSON document. */
export function schemaFiles(): [path: string, text: string][] {
  return Object.entries(kinds).map(([kind, schema]) => {
    const body = { title: kind, ...toJsonSchema(schema, { errorMode: 'throw', ignoreActions: ['check'] }) }
    return [`docs/schemas/${kind}.json`, `${JSON.stringify(body, null, 2)}\n`]
  })
}
