// Extension Identifier: io.modelcontextprotocol/tasks
// The structure of the official extension, as far as messages go.
import type { Error, InputRequests, InputResponses, NotificationParams } from "./schema.js";

export interface Task {
  taskId: string;
  status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  ttlMs: number | null;
  pollIntervalMs?: number;
}

export interface WorkingTask extends Task { status: "working" }
export interface InputRequiredTask extends Task {
  status: "input_required";
  inputRequests: InputRequests;
}
export interface CompletedTask extends Task {
  status: "completed";
  result: { [key: string]: unknown };
}
export interface FailedTask extends Task { status: "failed"; error: Error }
export interface CancelledTask extends Task { status: "cancelled" }
export type DetailedTask =
  | WorkingTask
  | InputRequiredTask
  | CompletedTask
  | FailedTask
  | CancelledTask;

export type CreateTaskResult = Task & { resultType: "task" };

export interface GetTaskRequest { method: "tasks/get"; params: { taskId: string } }
export type GetTaskResult = DetailedTask & { resultType: "complete" };

export interface UpdateTaskRequest {
  method: "tasks/update";
  params: { taskId: string; inputResponses: InputResponses };
}
export interface UpdateTaskResult { resultType: "complete" }

export interface CancelTaskRequest { method: "tasks/cancel"; params: { taskId: string } }
export interface CancelTaskResult { resultType: "complete" }

export type TaskStatusNotificationParams = NotificationParams & DetailedTask;
export interface TaskStatusNotification {
  method: "notifications/tasks";
  params: TaskStatusNotificationParams;
}
