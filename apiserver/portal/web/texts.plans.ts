// What the pages of customers and of operators call plans, features and limits.
export const planTexts = {
  plans: { STARTER: "Starter", BASIC: "Basic", PRO: "Pro", BUSINESS: "Business",
    TEAM: "Team" } as Record<string, string>,
  features: { MANUAL_RUN: "Manual runs", WEEKLY_SCHEDULER: "Weekly starts",
    DAILY_SCHEDULER: "Daily starts", SITE_MAP: "Sites and sitemaps", DATA_EXPORT: "Exports",
    DATA_SHARING: "Shares", DATA_CHARTS: "Charts", EXTERNAL_API: "Rows for clients",
    GROUP_CUSTOM_CATEGORIES: "Categories", API: "Requests as curl",
    DATA_ENRICHMENT: "Enrichment", TEXT_MATCHING: "Matching" } as Record<string, string>,
  limits: { MAX_SCRAPERS: "Scrapers", MAX_GROUPS: "Groups", DATA_SHARING_LIMITS: "Shares",
    GROUP_CUSTOM_CATEGORIES_LIMIT: "Categories" } as Record<string, string>,
};
