// Extension Identifier: io.modelcontextprotocol/skills
// Messages: none
//
// Skills: directories of instructions that a server serves as resources. The requests `skills/list`,
// `skills/get` and `resources/directory/read` are those of the feature `skills`: clients send them
// without a declaration of their own, which messages of a module here would need.
import type { CacheableResult, PaginatedResult, Resource } from "./schema.js";

/** Settings of a server that serves skills. */
export interface SkillsServerCapabilities {
  /** Whether it lists directories by `resources/directory/read`; by default it does not. */
  directoryRead?: boolean;
}

/** A file of a skill. */
export interface SkillResource {
  /** URI of its resource. */
  uri: string;
  /** SHA-256 of its bytes: `sha256:` and 64 lowercase hexadecimal digits. */
  digest: string;
  /**
   * Number of its bytes.
   * @TJS-type integer
   */
  size: number;
}

/** The frontmatter of a `SKILL.md` as JSON, with all members that its author wrote. */
export interface SkillFrontmatter {
  /** Name of the skill, as that of its directory. */
  name: string;
  /** The use of the skill. */
  description: string;
  [key: string]: unknown;
}

/** A skill: where it is, what it is for, and what belongs to it. */
export interface Skill {
  /** URI of its `SKILL.md`. */
  uri: string;
  /** The frontmatter of that file. */
  frontmatter: SkillFrontmatter;
  /** All its files, or `dynamic` where contents change too often for digests. */
  resources: SkillResource[] | "dynamic";
}

/** The result of `skills/list`; a server may leave skills out. */
export interface ListSkillsResult extends PaginatedResult, CacheableResult {
  /** Skills of the server. */
  skills: Skill[];
}

/** The params of `skills/get`. */
export interface GetSkillParams {
  /** URI of the `SKILL.md`. */
  uri: string;
}

/** The result of `skills/get`. */
export interface GetSkillResult extends CacheableResult {
  /** The skill. */
  skill: Skill;
}

/** The params of `resources/directory/read`. */
export interface ReadResourceDirectoryParams {
  /** URI of the directory, without a slash at its end. */
  uri: string;
  /** Where the page begins. */
  cursor?: string;
}

/** The result of `resources/directory/read`. */
export interface ReadResourceDirectoryResult extends PaginatedResult {
  /** What is directly in the directory. */
  resources: Resource[];
}
