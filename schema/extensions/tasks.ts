// Extension Identifier: io.modelcontextprotocol/tasks
//
// Calls of tools that outlive their requests: the server answers with a task, which the client
// polls, gives the input that it asks for, and may cancel.
import type {
  Error,
  InputRequests,
  InputResponses,
  JSONRPCNotification,
  JSONRPCRequest,
  NotificationParams,
  Result,
} from "./schema.js";

/**
 * The state of a task. It ends as completed, failed or cancelled; until then it may change between
 * working and waiting for input.
 */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** A call that goes on after its request. */
export interface Task {
  /** The name that the server gave to the task. */
  taskId: string;
  /** The state of the task. */
  status: TaskStatus;
  /** The state in words for people, such as what is being done or why it failed. */
  statusMessage?: string;
  /** When the task began, in ISO 8601. */
  createdAt: string;
  /** When the state last changed, in ISO 8601. */
  lastUpdatedAt: string;
  /**
   * How many milliseconds after its beginning the server may forget the task; null for never.
   * @TJS-type integer
   * @nullable
   */
  ttlMs: number | null;
  /**
   * How many milliseconds a client should wait between two polls.
   * @TJS-type integer
   */
  pollIntervalMs?: number;
}

/** A task that is being worked on. */
export interface WorkingTask extends Task {
  status: "working";
}

/** A task that waits for input of the client. */
export interface InputRequiredTask extends Task {
  status: "input_required";
  /** What the server asks, by keys under which `tasks/update` answers. */
  inputRequests: InputRequests;
}

/** A task whose result is there. */
export interface CompletedTask extends Task {
  status: "completed";
  /** What the call would have returned without a task, a tool's error included. */
  result: { [key: string]: unknown };
}

/** A task that ended with an error of the protocol. */
export interface FailedTask extends Task {
  status: "failed";
  /** The error that the call would have got without a task. */
  error: Error;
}

/** A task that was cancelled before its end. */
export interface CancelledTask extends Task {
  status: "cancelled";
}

/** A task with what belongs to its state. */
export type DetailedTask =
  | WorkingTask
  | InputRequiredTask
  | CompletedTask
  | FailedTask
  | CancelledTask;

/** The answer to a call that became a task. */
export type CreateTaskResult = Result &
  Task & {
    resultType: "task";
  };

/** Asks for the state of a task, and for its result or error once it has ended. */
export type GetTaskRequest = JSONRPCRequest & {
  method: "tasks/get";
  params: {
    /** The task to look up. */
    taskId: string;
  };
};

/** A task as it stands. */
export type GetTaskResult = Result &
  DetailedTask & {
    resultType: "complete";
  };

/** Gives a task the input that it waits for. */
export type UpdateTaskRequest = JSONRPCRequest & {
  method: "tasks/update";
  params: {
    /** The task that asked. */
    taskId: string;
    /** Answers by the keys of the task's input requests; some may be left for later. */
    inputResponses: InputResponses;
  };
};

/** The server has the input; it may not have been used yet. */
export type UpdateTaskResult = Result & {
  resultType: "complete";
};

/** Asks the server to end a task. */
export type CancelTaskRequest = JSONRPCRequest & {
  method: "tasks/cancel";
  params: {
    /** The task to end. */
    taskId: string;
  };
};

/** The server knows of the wish; the task may still end in another way. */
export type CancelTaskResult = Result & {
  resultType: "complete";
};

/** A task as it stands after a change. */
export type TaskStatusNotificationParams = NotificationParams &
  DetailedTask & { [key: string]: unknown };

/** Tells a client that listens for a task that its state changed. */
export type TaskStatusNotification = JSONRPCNotification & {
  method: "notifications/tasks";
  params: TaskStatusNotificationParams;
};

/** What the extension adds to the notifications that a client asks for by `subscriptions/listen`. */
export interface TaskSubscriptionNotifications {
  /** Tasks whose changes the client wants. */
  taskIds?: string[];
}

/** What the extension adds to the notifications that the server grants. */
export interface TaskSubscriptionAcknowledgedNotifications {
  /** Tasks whose changes the server will send. */
  taskIds?: string[];
}

/** What both sides declare under the identifier of the extension: an object without members. */
export type TasksExtensionCapability = Record<string, never>;
