"""Medicine holds no personal data: masking leaves it as it is, and the scan of what is left lists none of it."""

from itertools import chain

import pytest

from tests.support.judged_texts import damaged

CHATS = {
    "ages and numbers": [
        "宝宝不足6个月可以吃退热药吗？现在体温38.5度，体重7公斤多一点。",
        "我妈高压大于160，低压小于100，这种情况要不要加药？",
        "空腹血糖低于3.9才算低血糖对吧？我昨天测的是4.1。",
        "孩子小于3岁能做雾化吗，会不会有依赖？",
        "体检报告写着结节最大径不足5mm，需要多久复查一次？",
        "患儿小于2岁可以口服补液盐吗？",
        "我妈小于60公斤，用多少剂量合适？",
    ],
    "drugs and herbs": [
        "吃阿法替尼三个月了，脸上起皮疹，能用红霉素软膏吗？",
        "方子里有小蓟、白茅根和仙鹤草，尿血能喝吗？",
        "高锰酸钾坐浴水温多少合适，一片兑多少水？",
        "柴胡舒肝散和逍遥丸能一起吃吗，我是肝气郁结。",
        "黄连素和蒙脱石散要隔多久吃？",
        "金钱草和海金沙一起煮水喝能排石头吗？",
        "我老公吉西他滨用到第三个周期了，血小板一直掉怎么办？",
        "孩子万托林吸了还是喘，要不要再加一次？",
        "我妈安博维吃了两年，最近老是干咳。",
        "我婆婆高良姜煮水喝，胃痛好一些了。",
    ],
    "points and eponyms": [
        "艾灸足三里和关元每次多长时间合适？",
        "按合谷、太冲、阳陵泉能缓解偏头痛吗？",
        "我爸确诊帕金森五年了，美多芭加到半片一天三次。",
        "白塞病口腔溃疡老是反复，沙利度胺要吃多久？",
        "我妈阿尔茨海默三年了，晚上总是不睡觉。",
        "桥本甲状腺炎，TPO抗体大于600，需要吃优甲乐吗？",
    ],
    "weeks, scores, brands": [
        "孕39周+2，羊水指数8.5，胎心140，还能再等等吗？",
        "睡眠监测AHI是32.6，要戴呼吸机吗？",
        "Gleason评分4+3=7，骨扫描没事，能手术吗？",
        "马应龙的膏药哺乳期能用吗？",
        "国药准字Z20025001这个药饭前吃还是饭后吃？",
    ],
}
TEXTBOOK = {
    "limits": [
        "新生儿出生体重低于2500g称为低出生体重儿，低于1500g称为极低出生体重儿。",
        "成人静息心率大于100次/分为窦性心动过速，小于60次/分为窦性心动过缓。",
        "血小板计数不足50×10^9/L时应避免有创操作。",
        "胎龄满28周至不足37周分娩者称早产。",
        "尿量小于400ml/24h为少尿，小于100ml/24h为无尿。",
    ],
    "eponyms": [
        "梅尼埃病以发作性眩晕、波动性听力下降和耳鸣为主要表现。",
        "马方综合征患者常有晶状体脱位和主动脉根部扩张。",
        "墨菲征阳性提示急性胆囊炎，麦氏点压痛提示阑尾炎。",
        "库欣综合征、艾迪生病与康恩综合征均为肾上腺皮质疾病。",
        "阿尔茨海默病与路易体痴呆、帕金森病痴呆的鉴别要点如下。",
    ],
    "herbs and points": [
        "何首乌、黄精、熟地黄同为补益之品，何首乌须防肝损害。",
        "白头翁汤由白头翁、黄柏、黄连、秦皮组成，主治热毒痢疾。",
        "小蓟饮子方中以小蓟、生地黄凉血止血。",
        "患者阳和汤证者，局部漫肿无头，皮色不变。",
        "胃痛患者梁丘穴按之酸痛，可针泻之。",
        "秦艽、徐长卿、威灵仙、路路通常用于风湿痹痛。",
        "曲池、合谷、外关、列缺多用于上肢病证。",
        "章门为脏会，京门为肾之募穴，期门为肝之募穴。",
    ],
    "genes, rates, references": [
        "KRAS、EGFR、ALK与ROS1基因检测用于非小细胞肺癌的分型。",
        "该病年发病率约为3.2/10万，男女之比为1.4:1。",
        "患病率由1990年的1234.5/10万上升至2019年的1589.2/10万。",
        "中华内科杂志, 2019, 58(12): 1023-1031.",
        "详见本书第1023-1031页及附表12-3。",
        "参见第1287～1294页。",
    ],
}
CRITERIA = {
    "below": [
        "患者小于18岁。",
        "年龄小于18周岁者；",
        "受试者不足12周岁或患者低于法定年龄。",
        "体重小于40kg或BMI低于18.5者排除。",
        "预计生存期低于3个月的患者。",
        "左室射血分数小于等于40%的受试者。",
        "患者少于2个可测量病灶；",
    ],
    "above": [
        "患者大于75岁。",
        "ECOG评分大于等于2分的患者不得入组。",
        "入组前4周内接受过大于等于2次全身化疗者。",
        "患者超过65岁且合并高血压；",
        "QTcF间期男性大于450ms、女性大于470ms。",
        "患者高于正常值上限3倍的转氨酶水平。",
    ],
    "signs": [
        "中性粒细胞计数≥1.5×10^9/L，血小板≥100×10^9/L，血红蛋白≥90g/L。",
        "年龄≥18岁且≤70岁，性别不限；",
        "肌酐清除率<30ml/min（Cockcroft-Gault公式）；",
        "患者＞6个月未接受抗病毒治疗，HBV DNA＞2000IU/ml。",
        "病程超过305周或基线EDSS评分＞6.5分。",
        "在305周医生评估时无进展者。",
    ],
    "drugs, points, eponyms": [
        "既往使用过阿帕替尼、安罗替尼或呋喹替尼者排除。",
        "对多西他赛、白蛋白紫杉醇或卡铂过敏者。",
        "患者阿法替尼治疗后进展；",
        "患者吉西他滨一线治疗失败或不能耐受；",
        "艾灸组取关元、气海、三阴交、足三里，每次30分钟。",
        "符合帕金森病英国脑库标准，Hoehn-Yahr分期1～3级。",
        "合并阿尔茨海默病、亨廷顿病或克雅病者排除。",
    ],
}
QUERIES = {
    "place, disease and hospital": [
        "上海类风湿医院排行榜",
        "北京癫痫医院哪家好",
        "广州白癜风医院排名",
        "南京治疗牛皮癣的医院",
        "武汉不孕不育医院前十名",
        "深圳强直性脊柱炎医院哪家好",
        "成都抑郁症医院挂号",
        "沈阳类风湿医院排行榜",
        "安徽痛风医院哪家好",
        "合肥甲状腺结节医院",
    ],
    "drugs and herbs": [
        "阿法替尼多少钱一盒",
        "小蓟饮子的功效",
        "高丽参和西洋参的区别",
        "金钱草泡水的禁忌",
        "白芍和赤芍的区别",
        "安立生坦片说明书",
        "宝宝小蓟能吃吗",
        "孩子司美格鲁肽过敏怎么办",
    ],
    "numbers and weeks": [
        "小于胎龄儿是什么意思",
        "孕30周5天正常胎儿大小",
        "血糖低于多少有生命危险",
        "早产不足34周打几针地塞米松",
        "甲状腺结节大于1厘米要手术吗",
    ],
    "eponyms, points, brands": [
        "阿尔茨海默症早期症状",
        "帕金森能活多久",
        "合谷穴准确位置图",
        "马应龙痔疮膏孕妇能用吗",
        "王老吉上火能喝吗",
        "丁桂儿脐贴几岁能用",
    ],
}
NOTES = {
    "findings": [
        "神志清，精神可，BP 138/86mmHg，HR 78次/分，双肺呼吸音粗，未闻及干湿啰音。",
        "查体：Lasegue征（+），Babinski征（-），Kernig征（-）。",
        "尿常规：白细胞12～15/HP，蛋白（+），尿比重1.025。",
        "超声：左肾6.5mm×4.2mm强回声，后方伴声影；前列腺42mm×38mm×35mm。",
        "末次月经不详，孕周不足12周，HCG 12345.6mIU/ml，孕酮18.2ng/ml。",
    ],
    "scores and stages": [
        "入院时APACHE Ⅱ评分18分，SOFA评分6分，GCS评分12分。",
        "术后病理：腺癌，pT2N1aM0，ⅢB期，脉管癌栓（-），切缘（-）。",
        "患者大于同龄儿头围2个标准差，前囟2.0cm×1.5cm。",
        "患者低于标准体重，BMI 17.2，予肠内营养支持。",
        "ICD-10编码：E11.902，I10.x05，K21.001。",
    ],
    "treatment": [
        "出院带药：缬沙坦氢氯噻嗪片80/12.5mg 1片 qd，阿托伐他汀20mg qn。",
        "予黄芪注射液20ml、参麦注射液50ml静滴7天。",
        "针刺内关、神门、百会、印堂，留针30分钟。",
        "患者吉西他滨第2周期化疗后出现Ⅲ度骨髓抑制，予对症处理。",
        "患者吉法酯口服2周后反酸减轻，复查胃镜溃疡已愈合。",
        "冠脉造影示LAD中段狭窄75%，植入支架1枚（3.0mm×24mm）。",
        "行腹腔镜下胆囊切除术，Calot三角解剖清楚，出血不足20ml。",
    ],
    "diagnoses and advice": [
        "出院诊断：1. 2型糖尿病 2. 桥本甲状腺炎 3. 高脂血症",
        "患者自诉便秘，予麻仁润肠丸、乳果糖，症状好转。",
        "嘱低盐低脂饮食，1周后心内科门诊复查，不适随诊。",
        "考虑帕金森叠加综合征，阿尔茨海默病待排。",
        "尿酸高于520μmol/L，予别嘌醇，血肌酐低于正常上限。",
    ],
}
ENGLISH = {
    "behind a label": [
        "Patient: stable, afebrile, tolerating oral diet.",
        "Patient: fully oriented to person, place and time.",
        "Dr. visit in two weeks if symptoms persist.",
        "Referring physician: please review the dosage.",
        "Next of kin: informed by telephone.",
        "Emergency contact: none recorded.",
        "Signed: yes. Attending: to be decided.",
    ],
    "eponyms": [
        "Parkinson disease was staged as Hoehn and Yahr 2.",
        "Down syndrome screening is offered at 11 to 13 weeks.",
        "Hashimoto thyroiditis with TPO antibodies above 600 IU/mL.",
        "A Baker cyst was seen behind the left knee.",
        "Wilson disease: ceruloplasmin below 20 mg/dL.",
        "She has Bell palsy and her husband has Crohn disease.",
    ],
    "scores": [
        "The Apgar scores were 8 and 9 at one and five minutes.",
        "The Charlotte score was 3 in both groups.",
        "Her Charlson comorbidity index was 4, the Barthel index 85.",
        "Wells score 4.5, Glasgow Coma Scale 13, Braden score 16.",
    ],
    "criteria": [
        "Patients younger than 18 years or older than 75 years were excluded.",
        "Platelets less than 50,000/uL or INR greater than 1.5.",
        "Infants under 32 weeks or below 1500 g were not enrolled.",
        "Creatinine clearance by Cockcroft-Gault below 30 mL/min.",
    ],
    "drugs, genes, references": [
        "St John's wort may lower the levels of warfarin.",
        "Lady Windermere syndrome responded to azithromycin and Florinef.",
        "BRCA1, Sonic hedgehog and JAK2 V617F were tested.",
        "N Engl J Med 2015;373(22):2117-2128.",
        "The incidence rose from 1234.5 to 1589.2 per 100,000 person-years (pp. 1023-1031).",
    ],
}
GENRES = {
    "chats": CHATS,
    "textbook": TEXTBOOK,
    "criteria": CRITERIA,
    "queries": QUERIES,
    "notes": NOTES,
    "english": ENGLISH,
}


@pytest.mark.parametrize(("genre", "theme"), [(genre, theme) for genre, themes in GENRES.items() for theme in themes])
def test_medicine_without_a_person_stays_as_it_is(genre: str, theme: str) -> None:
    """A user can rely on it that no clinical sentence of a genre is changed, or stops a run (some hold today too)."""
    assert damaged(*GENRES[genre][theme]) == {}


COMPARATORS = {
    "less": ("小于",),
    "below": ("低于", "少于", "不足", "不到", "未满", "小于等于", "不超过"),
    "above": ("大于", "高于", "多于", "超过", "大于等于", "不低于", "≥"),
}
AFTER = ("18岁", "18周岁", "3个月", "28周", "40kg", "2分", "5mm", "1.5倍", "十八岁", "30 %")
BEFORE = ("患者", "受试者", "年龄", "孕妇", "病人", "体重", "患儿", "女性", "患者年龄")


TAKEN = ("孩子{}过敏", "我妈{}吃了一周", "我老公{}能停吗", "患者{}3周后复查", "宝宝{}能吃吗", "我婆婆{}不敢再用了")
PRESSED = (
    "患者{}穴压痛明显",
    "给患者{}穴注射",
    "孩子{}穴贴敷",
    "胃痛病人{}穴按之酸痛",
    "大夫让我按{}穴",
    "我妈{}穴艾灸",
)
HAD = ("我妈{}三年了", "孩子{}复查正常", "患者{}病史5年", "我爸{}晚期", "我老公{}能治好吗")
LIKE_NAMES = {
    "drugs": (TAKEN, "阿法替尼 吉西他滨 吉法酯 尤瑞克林 司美格鲁肽 司维拉姆 左卡尼汀 贝那普利"),
    "brands": (TAKEN, "安博维 万托林 安素 易坦静 毕麦通 达喜 拜新同"),
    "herbs and decoctions": (TAKEN, "小蓟 高良姜 明日叶 车前子 温经汤 阳和汤 何首乌 徐长卿"),
    "points": (PRESSED, "梁丘 关冲 曲池 商丘 云门 章门 石关"),
    "eponyms": (HAD, "阿尔茨海默 帕金森 桥本甲状腺炎 马方综合征 范可尼贫血 白塞病 席汉综合征"),
}


@pytest.mark.parametrize("what", LIKE_NAMES)
def test_what_begins_with_a_surname_stays_behind_a_word_for_a_person(what: str) -> None:
    """A user can rely on it that drugs, herbs, points and eponyms are no names behind a word for a person."""
    contexts, names = LIKE_NAMES[what]
    assert damaged(*(around.format(name) for around in contexts for name in names.split())) == {}


CITIES = ("上海", "北京", "沈阳", "杭州", "郑州", "合肥", "安徽", "乌鲁木齐")
DISEASES = ("类风湿", "痛风", "甲状腺结节", "白癜风", "癫痫", "强直性脊柱炎", "不孕不育", "红斑狼疮")


@pytest.mark.parametrize("tail", ["医院排行榜", "医院哪家好", "医院排名前十", "医院"])
def test_a_place_a_disease_and_hospital_are_a_query_and_no_hospital(tail: str) -> None:
    """A user can rely on it that a search for a hospital that treats a disease keeps place and disease."""
    assert damaged(*(f"{city}{disease}{tail}" for city in CITIES for disease in DISEASES)) == {}


@pytest.mark.parametrize("sort", COMPARATORS)
def test_a_comparator_before_a_number_is_no_name(sort: str) -> None:
    """A user can rely on it that no criterion of inclusion loses its comparator (of some words today too)."""
    words = COMPARATORS[sort]
    assert damaged(*(f"{before}{word}{after}者排除。" for word in words for before in BEFORE for after in AFTER)) == {}


def test_every_genre_is_wide_enough() -> None:
    """A user can rely on it that each genre is looked at in fifteen sentences or more, each once (today too)."""
    counts = {genre: len([*chain(*themes.values())]) for genre, themes in GENRES.items()}
    assert min(counts.values()) >= 15, counts
    every = [text for themes in GENRES.values() for text in chain(*themes.values())]
    assert len({*every}) == len(every)
